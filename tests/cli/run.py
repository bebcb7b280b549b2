#!/usr/bin/env python3
"""Runs the command line on small traces and compares what comes out with what stands beside each case.

cases/NAME.sh      the commands, run by sh in an empty folder
cases/NAME.stdout  expected standard output (absent: not compared)
cases/NAME.stderr  expected standard error (absent: must be empty)
cases/NAME.exit    expected exit status (absent: 0)

In a case, $traces is the folder of the trace texts, `trace NAME` makes ./NAME.statmem of traces/NAME.txt, and
`json` checks that its input is one JSON value and prints the fields named by its arguments (a.b.0).

Usage: run.py STATMEM MKTRACE [--update] [NAME...]. --update writes the expectations anew: look at the
difference and recompute by hand before you keep it."""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "cases")

PRELUDE = r'''
trace() { mktrace "$traces/$1.txt" "$1.statmem"; }
json() { python3 "$tests/json_fields.py" "$@"; }
'''


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return f.read()


def write(path, data, default):
    if data == default:
        if os.path.exists(path):
            os.remove(path)
    else:
        with open(path, "wb") as f:
            f.write(data)


def run_case(name, env):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(CASES, name + ".sh"), encoding="utf-8") as f:
            script = PRELUDE + f.read()
        return subprocess.run(["sh", "-c", script], cwd=folder, env=env, capture_output=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=120)


def main():
    args = [a for a in sys.argv[1:] if a != "--update"]
    update = "--update" in sys.argv
    statmem, mktrace = (os.path.abspath(a) for a in args[:2])
    path = os.pathsep.join([os.path.dirname(statmem), os.path.dirname(mktrace), os.environ["PATH"]])
    env = {"PATH": path, "LC_ALL": "C.UTF-8", "COLUMNS": "100", "TERM": "xterm", "TZ": "UTC",
           "HOME": "/nonexistent", "tests": HERE, "traces": os.path.join(HERE, "traces")}
    for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        if key in os.environ:
            env[key] = os.environ[key]
    names = args[2:] or sorted(f[:-3] for f in os.listdir(CASES) if f.endswith(".sh"))
    failed = 0
    for name in names:
        result = run_case(name, env)
        base = os.path.join(CASES, name)
        exit_code = str(result.returncode).encode() + b"\n"
        if update:
            write(base + ".stdout", result.stdout, None)
            write(base + ".stderr", result.stderr, b"")
            write(base + ".exit", exit_code, b"0\n")
            continue
        wrong = []
        for what, got, want in (("exit status", exit_code, read(base + ".exit") or b"0\n"),
                                ("stdout", result.stdout, read(base + ".stdout")),
                                ("stderr", result.stderr, read(base + ".stderr") or b"")):
            if want is not None and got != want:
                wrong.append(what)
                print(f"--- {name}: {what}, expected:\n{want.decode(errors='backslashreplace')}")
                print(f"--- {name}: {what}, got:\n{got.decode(errors='backslashreplace')}")
        print(f"{'FAIL' if wrong else 'ok  '} {name}{': ' + ', '.join(wrong) if wrong else ''}")
        failed += bool(wrong)
    if not names:
        print("no cases")
        return 1
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
