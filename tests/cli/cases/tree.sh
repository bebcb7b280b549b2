trace basic
statmem tree basic.statmem
