trace basic
statmem leaks --fail-above 1B basic.statmem
