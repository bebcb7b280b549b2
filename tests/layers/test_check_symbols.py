#!/usr/bin/env python3
"""Tests check_symbols.py on small libraries built on the spot: test_check_symbols.py COMPILER"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = sys.argv[1].split()
CHECK = [sys.executable, os.path.join(HERE, "check_symbols.py")]
failures = 0


def expect(what, arguments, status, needle=""):
    global failures
    done = subprocess.run(CHECK + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != status or needle not in done.stdout:
        failures += 1
        print(f"FAILED: {what}: exit {done.returncode}, expected {status} and {needle!r}:\n{done.stdout}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        def path(name, text=None):
            full = os.path.join(folder, name)
            if text is not None:
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            return full

        def build(source, *commands):
            for command in commands:
                subprocess.run(command, check=True, cwd=folder)

        source = path("a.c", "#include <string.h>\n#include <unistd.h>\nvoid *malloc(unsigned long);\n"
                             "int sm_a(int n) { return getpid() + n; }\nint sm_b(void) { return sm_a(getppid()); }\n")
        build(source, COMPILER + ["-c", "a.c", "-o", "a.o"], ["ar", "rc", "a.a", "a.o"],
              COMPILER + ["-shared", "-fPIC", "a.c", "-o", "a.so"])
        bad = path("b.c", "void *malloc(unsigned long);\nvoid *sm_c(void) { return malloc(3); }\n")
        build(bad, COMPILER + ["-fno-builtin", "-c", "b.c", "-o", "b.o"], ["ar", "rc", "b.a", "b.o"])

        both = path("both", "# a list\ngetpid  no memory, no lock\ngetppid  the same # why not\n")
        expect("all allowed", ["undefined", path("a.a"), both], 0)
        expect("a pattern", ["undefined", path("a.a"), path("p", "getp* processes\n")], 0)
        expect("one not allowed", ["undefined", path("a.a"), path("one", "getpid  x\n")], 1, "getppid: not in the list")
        expect("no reason given", ["undefined", path("a.a"), path("none", "getpid\n")], 1, "has no reason")
        expect("forbidden though listed", ["undefined", path("b.a"), path("m", "malloc  please\n")], 1, "malloc: never")

        shown = path("shown", "sm_a x\nsm_b y\n")
        map_file = path("ok.map", "X { global: sm_a; sm_*; /* other; */ local: *; };\n")
        expect("exports as listed", ["exported", path("a.so"), shown, map_file], 0)
        expect("an export too many", ["exported", path("a.so"), path("s1", "sm_a x\n")], 1, "sm_b: exported, but not in the list")
        expect("an export missing", ["exported", path("a.so"), path("s3", "sm_a x\nsm_b y\nsm_z z\n")], 1, "sm_z: in the list")
        expect("not in the map", ["exported", path("a.so"), shown, path("bad.map", "{ global: sm_a; local: *; };")], 1,
               "sm_b: exported, but not in")
        expect("map without local", ["exported", path("a.so"), shown, path("l.map", "{ global: sm_*; };")], 1, "no `local")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
