name=$(printf 'a%.0s' $(seq 10000))
printf 'meta executable %s\nloc 1 %s.ml %s 1 0 1\nalloc 0:0 1 1 minor 1\nend 1 0\n' \
    $name $name $name > long.txt
mktrace long.txt long.statmem
statmem top long.statmem | tail -n +5 | awk '{ if (length($0) > 130) print "too wide:", length($0); else print }'
statmem top --by domain long.statmem | tail -n 1
statmem dump long.statmem | wc -c
