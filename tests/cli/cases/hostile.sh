trace hostile
statmem info hostile.statmem | sed 's/, [0-9.]* k\{0,1\}B$//' > out
statmem top hostile.statmem >> out
statmem top --by thread hostile.statmem >> out
statmem dump hostile.statmem >> out
cat out
# nothing but printable characters and line ends
tr -d '\n' < out | LC_ALL=C grep -c "$(printf '[\001-\037\177]')"
statmem info --json hostile.statmem | json header.executable header.host header.context threads.0.name
statmem top --json hostile.statmem | json rows.0.function rows.0.file
