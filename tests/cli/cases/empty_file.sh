: > empty
for c in info top dump; do statmem $c empty; echo "$c: $?"; done
