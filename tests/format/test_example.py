#!/usr/bin/env python3
"""The worked example of docs/format.md is what it says: its bytes, put together, are a sound trace in which
both decoders find exactly the lines that the document gives.

    test_example.py DUMP_CANONICAL"""
import os
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "../../docs/format.md"), encoding="utf-8") as f:
    section = f.read().split("\n## 11. Worked example\n")[1].split("\n## 12.")[0]
hex_block, expected = re.findall(r"```\w*\n(.*?)```", section, re.S)

data = b""
for line in hex_block.splitlines():
    if not line or line.startswith("#"):
        continue
    offset, rest = line.split("  ", 1)
    if int(offset, 16) != len(data):
        sys.exit(f"offset {offset} stands where {len(data):04X} is")
    data += bytes.fromhex(rest.split("|")[0])

with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "example.stm")
    with open(path, "wb") as f:
        f.write(data)
    for command in ([sys.executable, os.path.join(here, "decode_trace.py"), path], [sys.argv[1], path]):
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{command[0]}: exit status {done.returncode}")
        if done.stdout != expected:
            sys.exit(f"{command[0]} finds other lines:\n{done.stdout}")
    losses = subprocess.run([sys.argv[1], "--losses", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    if losses:
        sys.exit(f"losses in the example:\n{losses}")
print(f"{len(data)} bytes, as documented")
