#!/usr/bin/env python3
"""Stacks of OCaml and C, ours compared with libgcc's: test_mixed.py SOURCE_ROOT LIBRARY VERSION"""
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE, LIBRARY, VERSION = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
HERE = os.path.join(SOURCE, "tests", "unwind")


def main():
    tool = os.path.join(SOURCE, "tools", "ocaml-toolchain")
    found = subprocess.run([tool, "--quiet", "--cached", VERSION], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode != 0:
        print(f"no OCaml {VERSION} compiler")
        return 77
    compiler = os.path.join(found.stdout.strip(), "ocamlopt")
    five = VERSION.startswith("5")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("mixed.ml", "mixed_stubs.c", "oracle.c", "oracle.h"):
            shutil.copy(os.path.join(HERE, name), folder)
        shutil.copy(os.path.join(HERE, "more_5.ml" if five else "more_4.ml"), os.path.join(folder, "more.ml"))
        libraries = ["-I", "+unix", "-I", "+threads"] if five else ["-I", "+threads"]
        sources = ["unix.cmxa", "threads.cmxa", "mixed_stubs.c", "oracle.c", "more.ml", "mixed.ml"]
        for name, flags in {"plain": ["-g"], "inlined": ["-g", "-inline", "200"], "bare": []}.items():
            build = [compiler, *flags, *libraries, "-ccopt", f"-O2 -D_GNU_SOURCE -I{SOURCE}/src", *sources, LIBRARY,
                     "-cclib", "-lm", "-o", name]
            subprocess.run(build, cwd=folder, check=True, timeout=300, stderr=subprocess.DEVNULL)
            if name == "bare":
                subprocess.run(["strip", name], cwd=folder, check=True)
            done = subprocess.run([os.path.join(folder, name)], cwd=folder, timeout=120, check=False)
            print(f"OCaml {VERSION}, {name}: exit {done.returncode}", flush=True)
            if done.returncode != 0:
                if os.environ.get("KEEP"):
                    shutil.copytree(folder, os.environ["KEEP"], dirs_exist_ok=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
