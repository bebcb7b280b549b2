#!/usr/bin/env python3
"""A recorded stack through C, OCaml, C and OCaml again, with names and lines: test_callbacks.py SOURCE_ROOT BUILD_ROOT VERSION"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD, VERSION = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
STATMEM = os.path.join(BUILD, "statmem")


def run(*command, **options):
    return subprocess.run(command, check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, DEBUGINFOD_URLS=""), **options).stdout


def main():
    tool = os.path.join(SOURCE, "tools", "ocaml-toolchain")
    found = subprocess.run([tool, "--quiet", "--cached", VERSION], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        print(f"no OCaml {VERSION} compiler")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name in ("callbacks.ml", "callbacks_stubs.c"):
            shutil.copy(os.path.join(SOURCE, "tests", "symbols", name), folder)
        run(os.path.join(found.stdout.strip(), "ocamlopt"), "-g", "-ccopt", "-g", "callbacks_stubs.c", "callbacks.ml", "-o",
            "program", cwd=folder)
        run(STATMEM, "record", "-q", "--native-interval", "1", "-o", "t.stm", "--", "./program", cwd=folder)
        stacks = []
        for line in run(STATMEM, "dump", "--json", "t.stm", cwd=folder).splitlines():
            event = json.loads(line)
            if event.get("event") == "alloc" and event.get("bytes") == 5000 and event["heap"] == "native":
                stacks.append([(f["function"], os.path.basename(f["file"]), f["line"]) for f in event["stack"]])
        if len(stacks) != 4:
            print(f"{len(stacks)} blocks of 5000 bytes, 4 expected")
            return 1
        # Of each frame what is to be found there, innermost first; the runtime's own functions may stand between.
        wanted = [("stub_grab", "callbacks_stubs.c", 9)]
        wanted += [("Callbacks.down", "callbacks.ml", 4)] * 3
        wanted += [("caml_callback", None, None), ("Callbacks.middle.(fun)", "callbacks.ml", 5),
                   ("Stdlib__List.fold_left", "list.ml", None), ("Callbacks", "callbacks.ml", 6), ("main", None, None),
                   ("_start", None, None)]
        for stack in stacks[1:2]:
            rest = iter(stack)
            for function, file, line in wanted:
                if not any(f[0] == function and file in (None, f[1]) and line in (None, f[2]) for f in rest):
                    print(f"{function} {file}:{line} is missing in:", *stack, sep="\n  ")
                    return 1
        bad = [f for stack in stacks for f in stack if "+0x" in f[0] or f[0].startswith("caml") and f[0][4:5].isupper()]
        if bad:
            print("not named:", bad)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
