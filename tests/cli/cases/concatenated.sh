# two traces in one file: the first is read and the second named; --part reads it
trace basic
trace recursion
cat basic.statmem recursion.statmem > both.statmem
statmem info --json both.statmem | json samples losses.0.kind losses.0.detail
statmem info --json --part 2 both.statmem | json samples header.executable
statmem top --part 3 both.statmem > /dev/null; echo "part 3: $?"
statmem top --part 0 both.statmem > /dev/null; echo "part 0: $?"
