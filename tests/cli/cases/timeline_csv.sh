trace basic
COLUMNS=60 statmem timeline --csv --points 4 --by domain basic.statmem
