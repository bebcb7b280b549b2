#!/usr/bin/env python3
"""Files of one domain in versions 2 and 3, read and written again, come out with the bytes of the
original writer; the exception is stacks that it had cut. All files keep their contents through
version 3, those without several domains through version 2 as well."""
import filecmp
import os
import sys
import tempfile

from common import Checks, corpus, run, stat

tool = sys.argv[1]
expected, folder = corpus()
checks = Checks()
identical = {2: 0, 3: 0}
with tempfile.TemporaryDirectory() as work:
    out, back = os.path.join(work, "out"), os.path.join(work, "back")
    for name, e in sorted(expected.items()):
        path = os.path.join(folder, name)
        if "cut37" in name:
            continue
        figures = stat(tool, path)
        version, domains = figures["version"], len(figures["per_domain"])
        for to in (2, 3):
            for order in ("exact", "relaxed"):
                run(tool, "rewrite", str(to), order, path, out)
                again = stat(tool, out)
                what = "%s to version %d, %s" % (name, to, order)
                checks.equal(what + ": losses", again["losses"], [])
                checks.equal(what + ": orphans", again["orphans"], 0)
                for field in ("alloc", "alloc_major", "alloc_ext", "promote", "collect", "nsamples",
                              "sum_len_words", "last_time_us", "distinct_codes", "named", "exe",
                              "params", "pid", "rate", "word_size", "context"):
                    checks.equal("%s: %s" % (what, field), again[field], figures[field])
                if domains > 1 and to == 2:
                    continue
                checks.equal(what + ": domains", again["per_domain"], figures["per_domain"])
                if "truncstack" not in name:
                    if domains < 2:
                        checks.true(what + ": contents",
                                    run(tool, "digest", path) == run(tool, "digest", out))
                    if to == version and domains < 2 and "cut" not in name:
                        checks.true(what + ": bytes", filecmp.cmp(path, out, shallow=False))
                        identical[to] += 1
                # What was written is written the same again.
                if domains < 2 and "truncstack" not in name and order == "relaxed":
                    run(tool, "rewrite", str(to), order, out, back)
                    checks.true(what + ": stable", filecmp.cmp(out, back, shallow=False))
print("byte for byte: version 2: %d, version 3: %d" % (identical[2], identical[3]))
checks.done()
