trace basic
statmem info basic.statmem | sed 's/, [0-9.]* k\{0,1\}B$//'
