trace basic
statmem dump basic.statmem
