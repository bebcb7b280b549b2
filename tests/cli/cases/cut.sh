# cut in the middle of the events: what stands before is read, the loss is told
trace basic
head -c 700 basic.statmem > cut.statmem
statmem info --json cut.statmem | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(sorted(loss["kind"] for loss in d["losses"]), d["samples"], d["warnings"])'
statmem top cut.statmem > /dev/null 2> err; echo "top: $?"
grep -c "cut" err
for c in info top dump; do statmem $c --strict cut.statmem > /dev/null 2>&1; echo "$c: $?"; done
