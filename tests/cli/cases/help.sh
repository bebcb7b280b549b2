statmem help | sed '/^Commands:/,/^$/d'
statmem --help > a; statmem help > b; cmp a b
for c in $(statmem help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
    [ $c = help ] && continue
    statmem $c --help > a || echo "$c --help failed"
    statmem help $c > b || echo "help $c failed"
    cmp a b
    grep -q '^Usage: statmem '$c a && grep -q '^Options:' a && grep -q '^Examples:' a || echo "$c: incomplete"
    statmem $c -h | awk -v c=$c 'length($0) > 100 { print c ": wide line: " $0 }'
done
