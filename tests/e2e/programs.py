"""Builds the OCaml programs of tests/programs with a given compiler, records them, reads the traces back.

A test file calls main(): its command line is SOURCE_ROOT BUILD_ROOT VERSION. It exits 77 (skipped) when there is
no such compiler."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = BUILD = VERSION = BIN = WORK = STATMEM = None
SKIP = 77


# Looked for wherever it may be; other versions only when the caller has prepared them (tools/run-tests --all).
USUAL = ["4.13", "5.3"]


def toolchain(version):
    given = os.environ.get("STATMEM_OCAML_" + version.replace(".", "_"))
    if given or version not in USUAL:
        return given
    tool = os.path.join(SOURCE, "tools", "ocaml-toolchain")
    found = subprocess.run([tool, "--quiet", "--cached", version], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def is_5():
    return VERSION.startswith("5")


def libraries(names):
    """Compiler arguments that link the named standard libraries."""
    arguments = []
    for name in names:
        if is_5():
            arguments += ["-I", "+" + name]
        elif name == "threads":
            arguments += ["-I", "+threads"]
    return arguments + [name + ".cmxa" for name in names]


LIBRARIES = {
    "forking": ["unix"], "daemon": ["unix"], "raising_signal": ["unix"], "environment": ["unix"],
    "children": ["unix"], "ending": ["unix"], "threads": ["unix", "threads"],
}


def run(arguments, **options):
    options.setdefault("timeout", 120)
    return subprocess.run(arguments, capture_output=True, **options)


def compile(name, *flags, output=None, bytecode=False, debug=True, inputs=None):
    """Compiles tests/programs/NAME.ml once; returns the program's path."""
    target = os.path.join(WORK, output or name)
    if os.path.exists(target):
        return target
    folder = tempfile.mkdtemp(dir=WORK)
    for source in inputs or [name + ".ml"]:
        shutil.copy(os.path.join(SOURCE, "tests", "programs", source), folder)
    arguments = libraries(LIBRARIES.get(name, []))
    if bytecode:
        arguments = [a.replace(".cmxa", ".cma") for a in arguments]
    done = run([os.path.join(BIN, "ocamlc" if bytecode else "ocamlopt")] + (["-g"] if debug else [])
               + list(flags) + arguments + (inputs or [name + ".ml"]) + ["-o", target], cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return target


class Recorded:
    """One run of `statmem record`."""

    def __init__(self, arguments, *options, rate="1", environment=None, stdin=None, name=None, cwd=None,
                 timeout=120):
        self.folder = tempfile.mkdtemp(dir=WORK)
        self.path = os.path.join(self.folder, name or "trace.stm")
        self.done = run([STATMEM, "record", "-r", rate, "-o", self.path] + list(options) + ["--"] + arguments,
                        env=environment, stdin=stdin, cwd=cwd or self.folder, timeout=timeout)
        self.output = self.done.stdout
        self.errors = self.done.stderr.decode(errors="replace")
        self.code = self.done.returncode

    def files(self):
        return sorted(os.path.join(self.folder, f) for f in os.listdir(self.folder)
                      if "trace" in f and not f.endswith(".tail"))

    def info(self, path=None):
        done = run([STATMEM, "info", "--json", path or self.path])
        if done.returncode != 0:
            raise AssertionError("info failed: " + done.stderr.decode())
        return json.loads(done.stdout)

    def events(self, path=None, stacks=True):
        """All events, as `dump --json` prints them."""
        done = run([STATMEM, "dump", "--json", path or self.path] + ([] if stacks else ["--no-stacks"]))
        if done.returncode != 0:
            raise AssertionError("dump failed: " + done.stderr.decode())
        return [json.loads(line) for line in done.stdout.splitlines()]

    def functions(self, path=None):
        """Names of all functions in the stacks."""
        names = set()
        for event in self.events(path):
            for frame in event.get("stack", []):
                names.add(frame["function"] if isinstance(frame, dict) else frame)
        return names


class Case(unittest.TestCase):
    def same_as_untraced(self, arguments, *options, rate="1e-2", environment=None, **more):
        """Records, and checks that output and exit code are those of the untraced program."""
        plain = run(arguments, env=environment)
        recorded = Recorded(arguments, *options, rate=rate, environment=environment, **more)
        self.assertEqual(recorded.output, plain.stdout, recorded.errors)
        self.assertEqual(recorded.code, plain.returncode, recorded.errors)
        return recorded

    def sound(self, recorded, path=None):
        """Nothing lost, ended cleanly."""
        info = recorded.info(path)
        self.assertEqual(info["losses"], [], recorded.errors)
        return info


def main():
    global SOURCE, BUILD, VERSION, BIN, WORK, STATMEM
    SOURCE, BUILD, VERSION = sys.argv[1:4]
    STATMEM = os.path.join(BUILD, "statmem")
    for name in list(os.environ):
        if name.startswith("STATMEM_OCAML_"):
            continue
        if name.startswith(("STATMEM_", "MEMTRACE", "OCAMLRUNPARAM", "CAMLRUNPARAM", "LD_PRELOAD")):
            del os.environ[name]
    BIN = toolchain(VERSION)
    if BIN is None:
        print("no OCaml " + VERSION)
        sys.exit(SKIP)
    with tempfile.TemporaryDirectory(prefix="statmem-e2e-") as WORK:
        unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
