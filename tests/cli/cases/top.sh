trace basic
statmem top basic.statmem
