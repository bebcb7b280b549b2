statmem --version
