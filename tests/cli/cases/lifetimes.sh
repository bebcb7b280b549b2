trace basic
statmem lifetimes --csv basic.statmem
