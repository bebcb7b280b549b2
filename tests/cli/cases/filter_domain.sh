trace basic
statmem query --domain 1 --by function basic.statmem
