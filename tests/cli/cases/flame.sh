# Boxes with their place, share and name; names of traces stay text; both kinds of file are well formed.
trace basic
trace hostile
boxes() { sed -n 's/.*data-x="\([^"]*\)" data-w="\([^"]*\)" data-n="\([^"]*\)".*/\1 \2 \3/p'; }
xml() { python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.stdin.buffer); print("well formed")'; }
statmem flame basic.statmem | boxes
statmem flame --callers --weight live@end --sort weight basic.statmem | boxes
statmem flame basic.statmem | xml
statmem flame hostile.statmem | xml
statmem flame --html hostile.statmem | grep -c 'data-n="[^"]*[<>][^"]*"'
statmem flame --before basic.statmem basic.statmem | grep -c 'hsl(140 0% 86%)'
statmem flame --normalise basic.statmem
