trace basic
statmem info --bytes basic.statmem | grep -E 'allocated|peak|live'
