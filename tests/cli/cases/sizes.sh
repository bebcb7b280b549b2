trace basic
statmem sizes basic.statmem
