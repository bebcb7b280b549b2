#!/usr/bin/env python3
"""Traces of other programs through our format and back.

usage: test_convert.py STATMEM CONTENT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

STATMEM, CONTENT = sys.argv[1:3]
HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.environ.get("STATMEM_CORPUS", os.path.join(HERE, "..", "..", "..", "shared", "corpus"))
if not os.path.isdir(CORPUS):
    print("no corpus")
    sys.exit(77)
NAMES = sorted(n for n in os.listdir(CORPUS) if n.endswith(".ctf"))


def version(path):
    with open(path, "rb") as f:
        return f.read(30)[28]


def run(*args, code=0):
    r = subprocess.run([STATMEM, *args], capture_output=True, text=True)
    if r.returncode != code:
        raise AssertionError("%s: exit %d\n%s" % (args, r.returncode, r.stderr))
    return r


def content(path):
    r = subprocess.run([CONTENT, path], capture_output=True, text=True, check=True)
    return json.loads(r.stdout)


class Convert(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="statmem-convert-")
        self.addCleanup(shutil.rmtree, self.dir, True)

    def to(self, source, name, *options):
        out = os.path.join(self.dir, name)
        r = run("convert", *options, "--json", source, out)
        return out, json.loads(r.stdout)

    def test_every_event_survives(self):
        """Content: every event with its time, object, stack and names, in the same order."""
        for name in NAMES:
            with self.subTest(name):
                source = os.path.join(CORPUS, name)
                want = content(source)
                native, r = self.to(source, name + ".stm")
                self.assertEqual(content(native), want)
                self.assertEqual(r["events"], want["events"])
                again, _ = self.to(native, name + ".2.stm", "--no-compress")
                self.assertEqual(content(again), want)
                v3, _ = self.to(native, name + ".v3.ctf", "--to", "memtrace3")
                got = content(v3)
                for part in "events", "plain", "names":
                    self.assertEqual(got[part], want[part])

    def test_bytes_survive(self):
        """The original writer's own file comes back byte for byte, except where part of it cannot:
        files of version 1 (no longer written), cut ones, stacks whose end the writer had cut, and packets of
        several domains (their order is ours)."""
        identical = 0
        for name in NAMES:
            source = os.path.join(CORPUS, name)
            v = version(source)
            native, r = self.to(source, name + ".stm")
            if v == 1 or "cut" in name or r["domains"] > 1 or r["not_held"]["lost_stacks"] > 0:
                continue
            if name.startswith("git-") and v == 2 and self.early_writer(source):
                continue
            with self.subTest(name):
                out, _ = self.to(native, name, "--to", "memtrace%d" % v)
                with open(source, "rb") as a, open(out, "rb") as b:
                    self.assertEqual(a.read(), b.read())
                identical += 1
        self.assertGreaterEqual(identical, 16)

    def early_writer(self, source):
        """Two public samples have flush rules of a time before version 2 was settled."""
        return os.path.basename(source).startswith(("git-examples", "git-lists"))

    def test_relaxed_order_is_smaller_and_holds_the_same(self):
        source = os.path.join(CORPUS, "o53-headperdomain-pfib-d2-r1e-3.ctf")
        native, _ = self.to(source, "d2.stm")
        exact, a = self.to(native, "exact.ctf")
        relaxed, b = self.to(native, "relaxed.ctf", "--order", "relaxed")
        self.assertLess(b["bytes"], a["bytes"])
        self.assertEqual(content(exact)["plain"], content(relaxed)["plain"])
        for path in exact, relaxed:
            i = json.loads(run("info", "--json", path).stdout)
            self.assertEqual([(d["id"], d["allocations"]) for d in i["domains"]],
                             [(0, 18238), (1, 18025)])

    def test_ctf_directory_is_read_completely(self):
        if shutil.which("babeltrace2") is None:
            self.skipTest("babeltrace2 is not installed")
        for name in ("o53-headperdomain-pfib-d2-r1e-3.ctf", "o413-head-mix-d1-r1e-3.ctf"):
            with self.subTest(name):
                native, _ = self.to(os.path.join(CORPUS, name), name + ".stm")
                out, r = self.to(native, name + ".dir", "--to", "ctf")
                bt = subprocess.run(["babeltrace2", out], capture_output=True, text=True)
                self.assertEqual(bt.returncode, 0, bt.stderr)
                lines = [l for l in bt.stdout.splitlines()
                         if "location" not in l.split("{")[0] and "trace_info" not in l]
                self.assertEqual(len(lines), r["events"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
