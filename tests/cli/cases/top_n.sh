trace basic
statmem top -n 1 --no-callers basic.statmem | tail -n +4
