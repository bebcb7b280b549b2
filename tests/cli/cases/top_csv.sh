trace basic
statmem top --csv --by function basic.statmem | tr -d '\r'
trace hostile
statmem top --csv hostile.statmem | tr -d '\r' | cut -d, -f1-3
