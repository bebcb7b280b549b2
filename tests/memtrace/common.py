"""What the memtrace tests share: the corpus, the tool, and a way to make small files."""
import json
import os
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.environ.get("STATMEM_CORPUS", os.path.join(SOURCE, "..", "shared", "corpus"))
SKIP = 77


def corpus():
    """Expected figures by file name, and the folder; skips the test without a corpus."""
    try:
        with open(os.path.join(CORPUS, "expected.json")) as f:
            return json.load(f), CORPUS
    except OSError:
        print("no corpus in %s: skipped" % CORPUS)
        sys.exit(SKIP)


def run(tool, *arguments, check=True):
    p = subprocess.run([tool, *arguments], capture_output=True, timeout=300)
    if check and p.returncode != 0:
        sys.exit("%s %s: exit %d\n%s" % (tool, " ".join(arguments), p.returncode,
                                         p.stderr.decode(errors="replace")))
    return p.stdout.decode(errors="surrogateescape")


def stat(tool, path):
    return json.loads(run(tool, "stat", path))


class Checks:
    """Counts checks; done() ends the test, and fails when nothing was checked."""

    def __init__(self):
        self.passed, self.failed = 0, 0

    def equal(self, what, got, expected):
        if got == expected:
            self.passed += 1
        else:
            self.failed += 1
            print("%s: got %r, expected %r" % (what, got, expected))

    def true(self, what, condition):
        self.equal(what, bool(condition), True)

    def done(self):
        print("%d checks passed, %d failed" % (self.passed, self.failed))
        sys.exit(1 if self.failed or not self.passed else 0)
