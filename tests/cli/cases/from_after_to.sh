trace basic
statmem dump --from 2s --to 1s basic.statmem
