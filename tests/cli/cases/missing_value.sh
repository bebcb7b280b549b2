statmem dump x --limit
