#!/usr/bin/env python3
"""babeltrace2 reads our CTF directories to the end: every event, in ascending time, with the names and
figures that the file held."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

from common import Checks, SKIP, corpus, run, stat

if shutil.which("babeltrace2") is None:
    print("babeltrace2 is not installed: skipped")
    sys.exit(SKIP)
tool = sys.argv[1]
expected, folder = corpus()
checks = Checks()
# The time, which event, its domain and its fields.
LINE = re.compile(r"^\[([0-9.]+)\] \([^)]*\) (\w+): \{.*?domain = (\d+),.*?\}, \{(.*)\}$")


def babeltrace(directory):
    p = subprocess.run(["babeltrace2", "--clock-seconds", directory], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=300)
    checks.equal("babeltrace2's exit code", p.returncode, 0)
    checks.equal("babeltrace2's complaints", p.stderr.decode(), "")
    return p.stdout.decode(errors="replace").splitlines()


with tempfile.TemporaryDirectory() as work:
    for name in ["o53-headperdomain-pfib-d2-r1e-3.ctf", "o413-head-inl-d1-r1e-2.ctf",
                 "git-test-ocamlopt-4f12fef0.ctf", "git-lists_and_sets-1f74dcf3.ctf",
                 "o413-head-ext-d1-r1e-4.ctf", "o413-head-tiny-d1-r1e-5.ctf"]:
        path, out = os.path.join(folder, name), os.path.join(work, name)
        run(tool, "ctf", path, out)
        e = stat(tool, path)
        files = sorted(os.listdir(out))
        domains = sorted(e["per_domain"]) or ["0"]
        checks.equal(name + ": files", files, ["domain-" + d for d in domains] + ["metadata"])
        counts, allocs, last, short_words = collections.Counter(), collections.Counter(), 0.0, 0
        texts = set()
        for line in babeltrace(out):
            m = LINE.match(line)
            if m is None:
                checks.true("%s: a line like %r" % (name, line[:200]), False)
                continue
            time, event, domain, fields = float(m.group(1)), m.group(2), m.group(3), m.group(4)
            # CTF clocks go through floating point: half a microsecond of play.
            checks.true("%s: time %f after %f" % (name, time, last), time >= last - 1e-6)
            last = max(last, time)
            counts[event] += 1
            if event.startswith("alloc"):
                allocs[domain] += 1
            if event.startswith("alloc_"):
                short_words += int(event[6:])
            if event == "location":
                texts.update(re.findall(r'\{ "([^"]*)" \}', fields))
            if event == "trace_info":
                checks.true(name + ": executable", '"%s"' % e["exe"] in fields)
        total = e["alloc"] + e["alloc_major"] + e["alloc_ext"]
        checks.equal(name + ": allocations", sum(allocs.values()), total)
        checks.equal(name + ": by domain", dict(allocs),
                     {d: n[0] for d, n in e["per_domain"].items()})
        checks.equal(name + ": promotions", counts["promote"], e["promote"])
        checks.equal(name + ": collections", counts["collect"], e["collect"])
        checks.equal(name + ": trace infos", counts["trace_info"], len(domains))
        checks.true(name + ": words", short_words <= e["sum_len_words"])
        checks.true(name + ": locations", counts["location"] >= e["distinct_codes"])
        content = run(tool, "content", path)
        names = set(re.findall(r"\[(\S*) ", content))
        checks.true(name + ": file names", {n for n in names if n} <= texts)
        # A second trace does not go into the same directory.
        p = subprocess.run([tool, "ctf", path, out], capture_output=True)
        checks.true(name + ": refusal", p.returncode == 1 and b"not empty" in p.stderr)
checks.done()
