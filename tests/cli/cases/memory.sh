# what the parts must be stands in traces/memory.txt
trace memory
COLUMNS=80 statmem memory memory.statmem
COLUMNS=110 statmem memory --bytes memory.statmem | head -9
statmem memory --csv memory.statmem
statmem memory --json memory.statmem | json growth grew verdict gaps gaps_ns interval_ns first peak last.heap
statmem dump memory.statmem | grep gc_phase
statmem dump --json memory.statmem | grep pause
trace recursion
statmem memory recursion.statmem
echo "exit $?"
statmem memory --json --csv memory.statmem
echo "exit $?"
