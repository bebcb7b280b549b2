trace basic
COLUMNS=60 statmem timeline basic.statmem
