#!/usr/bin/env python3
"""Holds a source tree to the layer table of its ARCHITECTURE.md, and to a few rules on files.

    check_tree.py [ROOT]      exit 0, or 1 with one line per violation

* A file in src/X includes "Y/..." only when row X of the table names Y (or Y is X itself).
* Rows stand in the order of the way the data takes: a row names only rows above it, so there is no cycle.
* Hook-safe folders name only hook-safe ones, and do not include headers of malloc, stdio and assert.
* Every folder of src has a row, every row a folder.
* No source file is longer than 700 lines (from 600 on there is a warning): one idea per file.
* docs/environment.md names every environment variable of ours that the code names (strings STATMEM_..., MEMTRACE...).
* No file tells where it was written (home folders and the like): those paths exist on one machine only.
"""
import os
import re
import subprocess
import sys

WARN_LINES, MOST_LINES = 600, 700
ROW = re.compile(r"^\|\s*src/(\w+)\s*\|\s*(hook-safe|hosted)\s*\|([^|]*)\|")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
UNSAFE_HEADERS = {"stdio.h", "malloc.h", "assert.h", "alloca.h", "obstack.h"}
# Put together so that this file does not find itself.
MACHINE_PATHS = re.compile(r"(?<![\w.~*$}\])>-])/(?:" + "|".join(["home", "root", "work", "Users"]) + r")/[\w.]")
TEXT = (".c", ".h", ".py", ".sh", ".ml", ".mli", ".md", ".txt", ".build", ".opam", ".map", ".in", ".hex", "")


def read_table(root):
    """[(folder, world, allowed set)] in the order of the rows."""
    rows = []
    with open(os.path.join(root, "ARCHITECTURE.md"), encoding="utf-8") as text:
        for line in text:
            match = ROW.match(line)
            if match:
                rows.append((match[1], match[2], set(match[3].split())))
    return rows


def sources(root, folder):
    for where, _, names in os.walk(os.path.join(root, folder)):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".def", ".inc")):
                yield os.path.join(where, name)


def check_rows(root, rows):
    worlds = {name: world for name, world, _ in rows}
    if not rows:
        yield "ARCHITECTURE.md: no layer table (rows `| src/NAME | hook-safe or hosted | ... |`)"
    above = set()
    for name, world, allowed in rows:
        for other in sorted(allowed):
            if other not in worlds:
                yield f"ARCHITECTURE.md: row src/{name} names {other}, which has no row"
            elif other not in above:
                yield f"ARCHITECTURE.md: row src/{name} names {other}, which stands below it"
            elif world == "hook-safe" and worlds[other] != "hook-safe":
                yield f"ARCHITECTURE.md: src/{name} is hook-safe and names {other}, which is not"
        above.add(name)
        if not os.path.isdir(os.path.join(root, "src", name)):
            yield f"ARCHITECTURE.md: row src/{name} has no folder"
    for name in sorted(os.listdir(os.path.join(root, "src"))):
        if os.path.isdir(os.path.join(root, "src", name)) and name not in worlds:
            yield f"src/{name}: no row in ARCHITECTURE.md"


def check_includes(root, rows):
    worlds = {name: world for name, world, _ in rows}
    for name, world, allowed in rows:
        for path in sources(root, os.path.join("src", name)):
            shown = os.path.relpath(path, root)
            with open(path, encoding="utf-8", errors="replace") as text:
                for number, line in enumerate(text, 1):
                    match = INCLUDE.match(line)
                    if not match:
                        continue
                    quoted, target = match[1] == '"', match[2]
                    first = target.split("/")[0]
                    if not quoted:
                        if world == "hook-safe" and target in UNSAFE_HEADERS:
                            yield f"{shown}:{number}: <{target}> in hook-safe code"
                    elif target == "statmem.h":
                        pass  # the public interface
                    elif "/" not in target or first not in worlds:
                        yield f'{shown}:{number}: "{target}": write the folder, as in "base/bytes.h"'
                    elif first != name and first not in allowed:
                        yield f'{shown}:{number}: src/{name} may not include "{target}" (ARCHITECTURE.md)'


def project_files(root):
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        names = listed.stdout.decode("utf-8", "replace").splitlines()
        # A copy of the tree inside another repository lists nothing of its own.
        if names:
            return [n for n in names if os.path.isfile(os.path.join(root, n))]
    except (OSError, subprocess.CalledProcessError):
        pass
    names = []
    for where, folders, found in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".git", "build", "_build"))]
        names += [os.path.relpath(os.path.join(where, f), root) for f in found]
    return names


def check_files(root):
    for name in sorted(project_files(root)):
        if os.path.splitext(name)[1] not in TEXT:
            continue
        with open(os.path.join(root, name), "rb") as file:
            data = file.read()
        if b"\0" in data:
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        if name.endswith((".c", ".h", ".ml", ".py")):
            if len(lines) > MOST_LINES:
                yield f"{name}: {len(lines)} lines; {MOST_LINES} are the limit: split it"
            elif len(lines) > WARN_LINES:
                print(f"warning: {name}: {len(lines)} lines; aim at {WARN_LINES}")
        for number, line in enumerate(lines, 1):
            if MACHINE_PATHS.search(line):
                yield f"{name}:{number}: a path of one machine: {line.strip()[:80]}"


def check_environment(root):
    table = ""
    path = os.path.join(root, "docs", "environment.md")
    if os.path.isfile(path):
        with open(path, encoding="utf-8") as text:
            table = text.read()
    for folder in ("src", "ocaml"):
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(n for n in names if n.endswith((".c", ".h", ".ml"))):
                with open(os.path.join(where, name), encoding="utf-8", errors="replace") as text:
                    variables = set(re.findall(r'"((?:STATMEM|MEMTRACE)[A-Z_]*)[="]', text.read()))
                for variable in sorted(variables):
                    if f"`{variable}`" not in table:
                        yield f"{os.path.relpath(os.path.join(where, name), root)}: {variable} is not in docs/environment.md"


def violations(root):
    rows = read_table(root)
    yield from check_rows(root, rows)
    yield from check_includes(root, rows)
    yield from check_environment(root)
    yield from check_files(root)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here))
    found = list(violations(root))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
