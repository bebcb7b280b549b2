#!/usr/bin/env python3
"""Compiles each header alone, and twice over: it includes what it needs and guards itself.

    check_headers.py COMPILER ROOT"""
import os
import subprocess
import sys


def main():
    compiler, root = sys.argv[1].split(), sys.argv[2]
    headers = []
    for top in ("src", "include"):
        for where, _, names in os.walk(os.path.join(root, top)):
            headers += [os.path.relpath(os.path.join(where, n), os.path.join(root, top))
                        for n in names if n.endswith(".h")]
    failed = 0
    for header in sorted(headers):
        source = f'#include "{header}"\n#include "{header}"\nint sm_translation_unit;\n'
        done = subprocess.run(compiler + ["-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra",
                                          "-Wno-unused-parameter", "-Werror", "-I", "src", "-I", "include",
                                          "-x", "c", "-"],
                              cwd=root, input=source, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            failed += 1
            print(f"{header} does not compile alone:\n{done.stdout}")
    print(f"{len(headers)} headers, {failed} failed")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
