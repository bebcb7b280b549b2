for c in info top dump; do statmem $c nowhere.statmem; echo "$c: $?"; done
