trace frames
statmem top frames.statmem
LC_ALL=C statmem dump frames.statmem
