trace basic
statmem top --sort=size basic.statmem
