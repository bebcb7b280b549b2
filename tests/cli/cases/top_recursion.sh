trace recursion
statmem top recursion.statmem
statmem top --by function --inclusive --no-callers recursion.statmem
