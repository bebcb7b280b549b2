statmem help tpo
