# Names go, sums and structure stay; the same key gives the same names.
trace basic
echo secret > key
statmem strip basic.statmem a.stm 2>/dev/null
statmem strip a.stm b.stm --key-file key 2>/dev/null
statmem strip --key-file key basic.statmem c.stm 2>/dev/null
statmem query --by function --csv a.stm | cut -d, -f1,2
statmem query --json a.stm | json trace.executable trace.host
cmp -s a.stm c.stm && echo "the key makes no difference"
grep -c -a "Work\|list.ml\|/usr/bin/prog\|a test" a.stm
statmem strip basic.statmem a.stm
