trace basic
statmem query --filter 'size >= banana' basic.statmem
