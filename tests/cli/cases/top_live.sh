trace basic
statmem top --sort live --no-callers --bytes basic.statmem
