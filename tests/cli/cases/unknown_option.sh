trace basic
statmem top --srot live basic.statmem
