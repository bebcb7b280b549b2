trace basic
esc=$(printf '\033')
echo "piped: $(statmem top basic.statmem | grep -c "$esc")"
echo "always: $(statmem top --color always basic.statmem | grep -c "$esc\[")"
echo "always, NO_COLOR: $(NO_COLOR=1 statmem info --color always basic.statmem | grep -c "$esc\[1m")"
tty() { script -qec "$1" /dev/null < /dev/null; }
echo "terminal: $(tty 'statmem top basic.statmem' | grep -c "$esc\[")"
echo "terminal, NO_COLOR: $(NO_COLOR=1 tty 'statmem top basic.statmem' | grep -c "$esc\[")"
echo "terminal, never: $(tty 'statmem top --color never basic.statmem' | grep -c "$esc\[")"
echo "dumb terminal: $(TERM=dumb tty 'statmem top basic.statmem' | grep -c "$esc\[")"
