trace basic
COLUMNS=60 statmem timeline --series 'source = external' --points 2 --csv basic.statmem
