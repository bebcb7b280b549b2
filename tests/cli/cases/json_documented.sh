# every field that docs/reading.md names in the table of info --json is there
trace basic
statmem info --json basic.statmem > info.json
python3 - "$tests/../../docs/reading.md" << 'X'
import json, re, sys
keys = set()
def walk(x):
    if isinstance(x, dict):
        keys.update(x)
        for v in x.values():
            walk(v)
    elif isinstance(x, list):
        for v in x:
            walk(v)
walk(json.load(open("info.json")))
text = open(sys.argv[1], encoding="utf-8").read().split("## info")[1].split("## top")[0]
named = [n for row in text.splitlines() if row.startswith("|") for n in re.findall(r"`(\w+)`", row)]
absent = {"side_file", "kind", "detail", "events_known", "offset", "bytes", "count"}  # nothing was lost
absent |= {"interval_bytes", "max_bytes", "freed", "program", "runtime"}  # no native memory was recorded
print(len(named) > 40, [n for n in named if n not in keys | absent])
X
