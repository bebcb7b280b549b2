# A trace above 32 MB (of marks) is kept; what is listed is removed by its trace's name, by its own, by age, or all
export STATMEM_CACHE=$PWD/kept
{ cat "$traces/basic.txt" | sed '$d'
  awk 'BEGIN { for (i = 0; i < 60000; i++) x = x "m"; for (i = 0; i < 640; i++) print "mark 0", x; print "end 1 0" }'
} > big.txt
mktrace big.txt big.statmem
list() { statmem cache | sed "s|$PWD|HERE|g; s/[0-9]*-[0-9]*-[0-9]* [0-9]*:[0-9]*/DATE/; s/[0-9a-f]\{32\}/HASH/; s/ *[0-9.]* [kM]*B/ SIZE/; s/used  *trace/used trace/; s/^ *size/size/"; }
list
statmem sizes big.statmem > first
list
statmem sizes big.statmem | cmp - first
statmem cache --json | json files.0.usable files.0.trace_exists
statmem cache --remove big.statmem && list
statmem cache --remove big.statmem
statmem sizes --no-cache big.statmem | cmp - first && list
statmem sizes big.statmem > first
mv big.statmem moved
echo junk > kept/00000000000000000000000000000000.columns
list
statmem cache --remove "$PWD/big.statmem" && list
statmem cache --max 1GB | sed "s|$PWD|HERE|"
echo junk > kept/00000000000000000000000000000001.columns
statmem cache --clear | sed "s|$PWD|HERE|"
statmem cache --max lots
STATMEM_CACHE= statmem cache
