printf 'Dear reader,\nthis is not a trace.\n%0500d\n' 0 > letter
for c in info top dump; do statmem $c letter; echo "$c: $?"; done
