trace basic
for c in info top dump; do statmem $c basic.statmem > /dev/full; echo "$c: $?"; done
