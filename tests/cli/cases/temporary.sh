trace basic
statmem temporary --weight 'temporary<100allocs,allocated' basic.statmem
