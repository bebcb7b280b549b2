trace basic
statmem info --quick basic.statmem | sed 's/, [0-9.]* k\{0,1\}B$//'
statmem info --quick --json basic.statmem | json header.pid header.sample_rate
