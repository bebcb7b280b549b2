trace basic
for c in info top dump; do statmem $c --strict basic.statmem > /dev/null; echo "$c: $?"; done
