trace basic
statmem dump basic.statmem | :
{ statmem dump basic.statmem; echo "status $?" >&2; } 2> status | head -n 1
