#!/usr/bin/env python3
"""Every corpus file gives the figures that the original reader counted, in every field, and a file
that the original reads to its end without a word gives no loss."""
import os
import sys

from common import Checks, corpus, stat

FIELDS = ["alloc", "alloc_major", "alloc_ext", "promote", "collect", "nsamples", "sum_len_words",
          "sum_bt_len", "max_bt_len", "sum_common_prefix", "distinct_codes", "last_time_us",
          "per_domain"]
HEADER = ["exe", "params", "pid", "rate", "word_size", "context"]

tool = sys.argv[1]
expected, folder = corpus()
checks = Checks()
for name, e in sorted(expected.items()):
    got = stat(tool, os.path.join(folder, name))
    for field in FIELDS + [h for h in HEADER if h in e]:
        checks.equal("%s: %s" % (name, field), got[field], e[field])
    checks.equal(name + ": codes with names", got["named"], got["distinct_codes"])
    checks.equal(name + ": orphans", got["orphans"], 0)
    cut = "cut" in name
    checks.equal(name + ": losses", sorted({l["kind"] for l in got["losses"]}),
                 (["corrupt", "cut"] if "exe" not in e else ["cut"]) if cut else [])
    # Stacks that the original writer cut, and those coded on top of them, are marked.
    checks.equal(name + ": marked stacks", got["lost_stacks"], 4 if "truncstack" in name else 0)
checks.done()
