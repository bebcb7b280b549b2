"""Checks that standard input is JSON, strictly, and prints the fields named by the arguments, one per line."""
import json
import sys


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


data = json.loads(sys.stdin.buffer.read().decode("utf-8", errors="strict"), parse_constant=refuse)
for name in sys.argv[1:]:
    value = data
    for part in name.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    print(f"{name} = {json.dumps(value)}")
