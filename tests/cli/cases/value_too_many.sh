statmem dump --json=yes x
