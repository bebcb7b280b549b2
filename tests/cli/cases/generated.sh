# man pages and completion name every command and option
for shell in bash zsh fish; do statmem completion $shell > $shell || echo "$shell failed"; done
for c in $(statmem help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
    [ $c = help ] && continue
    statmem manpage $c > page || echo "no page of $c"
    for o in $(statmem $c --help | sed -n 's/^  \(-.,\|   \) --\([a-z0-9-]*\).*/\2/p'); do
        grep -q -e "\\\\-\\\\-$(echo $o | sed 's/-/.-/g')" page || echo "man page of $c: no --$o"
        [ $o = help ] && continue
        for shell in bash zsh; do
            grep -q -e "--$o" $shell || echo "$shell: no --$o of $c"
        done
        grep -q -e "from $c'.*-l $o" fish || echo "fish: no --$o of $c"
    done
    grep -q "statmem.-$c" - <<X || echo "main page: no $c"
$(statmem manpage statmem)
X
done
bash -n bash
for shell in zsh fish; do
    if command -v $shell > /dev/null; then $shell -n $shell || echo "$shell: syntax"; fi
done
bash -c '. ./bash
COMP_WORDS=(statmem top --sort pe); COMP_CWORD=3; _statmem; echo ${COMPREPLY[@]}
COMP_WORDS=(statmem inf); COMP_CWORD=1; _statmem; echo ${COMPREPLY[@]}
COMP_WORDS=(statmem dump --no-s); COMP_CWORD=2; _statmem; echo ${COMPREPLY[@]}'
