trace basic
COLUMNS=44 statmem top basic.statmem
