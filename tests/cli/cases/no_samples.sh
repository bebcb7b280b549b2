# a trace of a few hundred bytes in which nothing happened is sound
trace empty
[ $(wc -c < empty.statmem) -lt 500 ] || echo "it is large"
statmem info empty.statmem | sed 's/, [0-9]* B$//'
statmem top empty.statmem
statmem dump empty.statmem
