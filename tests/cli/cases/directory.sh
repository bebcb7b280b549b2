mkdir folder
for c in info top dump; do statmem $c folder; echo "$c: $?"; done
