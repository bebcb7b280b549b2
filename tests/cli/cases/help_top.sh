COLUMNS=80 statmem top --help
