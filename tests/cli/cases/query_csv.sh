trace basic
statmem query --by heap --csv basic.statmem
