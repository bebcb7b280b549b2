trace basic
statmem top --sort peak --no-callers basic.statmem
