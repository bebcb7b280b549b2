trace basic
statmem leaks basic.statmem
