trace basic
statmem query --by colour basic.statmem
