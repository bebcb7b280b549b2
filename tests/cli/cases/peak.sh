trace basic
statmem peak basic.statmem
