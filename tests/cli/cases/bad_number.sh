trace basic
statmem top -n ten basic.statmem
