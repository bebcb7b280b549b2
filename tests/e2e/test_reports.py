#!/usr/bin/env python3
"""What the reports say of programs that keep, drop and hand over memory in known ways."""
import csv
import io
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs
from programs import Case, Recorded, compile, is_5, run
import test_offheap

MIB = 1 << 20


class Reports(Case):
    def ask(self, recorded, command, *options):
        done = run([programs.STATMEM, command, "--json", *options, recorded.path])
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(report["losses"], [])
        return report

    def by_name(self, report, part):
        """Rows of which the place's name has the part."""
        return [s for s in report["sites"] if part in s["place"]["name"]]

    def test_leak_score(self):
        """A21: a table whose keys are never met again is told apart from what is kept once, replaced, or dropped."""
        recorded = Recorded([compile("keeping")], "--ocaml-only", rate="1e-2")
        self.sound(recorded)
        report = self.ask(recorded, "leaks", "--top", "0")
        leak, = self.by_name(report, "Keeping.remember")
        self.assertGreater(leak["score"], 0.6)
        self.assertGreaterEqual(leak["generations"], 0.7 * leak["generations_possible"])
        self.assertGreater(leak["slope_low"], 0)
        # A list cell and a pair each: 400,000 x (3 + 3) words.
        words = 400_000 * 6
        self.assertTrue(leak["live"]["low"] * 0.9 <= words * 8 <= leak["live"]["high"] * 1.1, leak["live"])
        ranks = [s["place"]["name"] for s in report["sites"]]
        self.assertTrue(any(".remember" in n for n in ranks[:3]), ranks)
        for name in ("Keeping.replace", "Keeping.fill", "Keeping.drop"):
            for other in self.by_name(report, name):
                self.assertLess(other["score"], 0.3, other)
        # Who is judged, and when it is too much.
        for options, code in ((["--fail-above", "1MB"], 1), (["--fail-above", "1GB"], 0),
                              (["--fail-above", "1MB", "-f", "site ~ Keeping.replace"], 0)):
            self.assertEqual(run([programs.STATMEM, "leaks", *options, recorded.path]).returncode, code, options)
        known = os.path.join(recorded.folder, "known")
        with open(known, "w", encoding="utf-8") as f:
            f.write("# all that the table holds\nremember\n*Hashtbl*\n*List*\nfill\n")
        done = run([programs.STATMEM, "leaks", "--fail-above", "1MB", "--suppress", known, recorded.path])
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(b"suppressed", done.stdout)

    def test_garbage_by_domain(self):
        """A23: whose garbage it is, in full at rate 1."""
        if not is_5():
            self.skipTest("OCaml 5 only")
        recorded = Recorded([compile("sibling")], "--ocaml-only", rate="1")
        self.sound(recorded)
        rows = self.ask(recorded, "domains")["rows"]
        busy = rows[0]
        self.assertNotEqual(busy["domain"], 0)
        made = 2000 * 65544  # with the word that tells the length
        self.assertGreaterEqual(busy["allocated"]["value"], made)
        self.assertLess(busy["allocated"]["value"], made * 1.05)
        self.assertTrue(busy["allocated"]["exact"])
        self.assertGreaterEqual(busy["own_peak"]["value"], 65544)
        for other in rows[1:]:
            self.assertLess(other["allocated"]["value"], made / 20)
        curves = self.ask(recorded, "timeline", "--by", "domain")["series"]
        curve, = [c for c in curves if c["filter"] == f"domain = {busy['domain']}"]
        self.assertEqual(max(curve["high"]), busy["own_peak"]["value"])

    def test_marshal(self):
        """A24: what unmarshalling makes is a source of its own."""
        recorded = Recorded([compile("marshal")], "--ocaml-only", rate="1")
        rows = self.ask(recorded, "query", "--by", "source")["rows"]
        marshal = sum(r["estimates"][0]["value"] for r in rows if "marshal" in r["values"][0]["name"])
        # 20 lists of 5000 pairs with strings: a cell, a pair and a string, 3 + 3 + 2 words each.
        self.assertGreaterEqual(marshal, 20 * 5000 * 8 * 8)
        self.assertLess(marshal, 20 * 5000 * 8 * 8 * 1.2)

    def test_bigarrays(self):
        """A13, A15, A28: parts keep the whole; what is dropped dies; parts add nothing."""
        program = test_offheap.program()
        whole = "source = native and size = 1MiB and inside ~ ba_alloc"
        # The parent's own block dies, its data live on: that is told by native memory.
        kept = Recorded([program, "sub"], "--native-interval", "1", rate="1")
        report = self.ask(kept, "query", "-w", "live@end,allocated", "-f", whole)
        live, allocated = report["totals"]
        self.assertEqual(live["value"], MIB)
        self.assertEqual(allocated["value"], MIB)  # a thousand parts add nothing
        tree = self.ask(kept, "tree", "-w", "live@end", "-f", whole)
        self.assertTrue(any("parent" in p["name"] for p in tree["places"]), tree["places"])
        dropped = Recorded([program, "loop"], "--ocaml-only", rate="1")
        rows = self.ask(dropped, "lifetimes", "-f", "source = custom and size >= 1MB")["rows"]
        self.assertNotIn("never freed", [r["values"][0]["name"] for r in rows])
        self.assertAlmostEqual(sum(r["estimates"][0]["value"] for r in rows), 50 * 8e6, delta=50 * 64)

    def test_native_leak_and_burst(self):
        """A18, A19: the path that forgets is named with its callers; after a burst live memory has fallen."""
        program = test_offheap.program()
        leak = Recorded([program, "path"], "--native-only", "--native-interval", "1")
        tree = self.ask(leak, "tree", "-w", "live@end", "--callers", "-f", "source = native and inside ~ stub_path")
        self.assertEqual(tree["total"]["rows"], 200)
        self.assertEqual(tree["total"]["value"], 200 * 5000)
        names = " ".join(p["name"] for p in tree["places"])
        self.assertIn("stub_path", names)
        self.assertIn("Offheap", names)
        burst = Recorded([program, "burst"], "--native-only", "--native-interval", "1")
        done = run([programs.STATMEM, "timeline", "--csv", "-f", "inside ~ stub_path", burst.path])
        points = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        self.assertEqual(sum(float(p["allocated"]) for p in points), 9_000_000)
        self.assertGreaterEqual(max(float(p["high"]) for p in points), 9_000)
        self.assertEqual(float(points[-1]["live"]), 0)


if __name__ == "__main__":
    programs.main()
