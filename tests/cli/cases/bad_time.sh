trace basic
statmem top --last 10parsecs basic.statmem
