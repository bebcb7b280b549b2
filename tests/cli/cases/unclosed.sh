# a trace without END, as after kill -9: read, and said so
sed '/^end/d; /^gc/d' "$traces/basic.txt" > open.txt
mktrace open.txt open.statmem
statmem info --json open.statmem | json end samples losses.0.kind warnings
statmem top --last 250us --no-callers open.statmem 2> err | tail -n +3
cat err
