#!/usr/bin/env python3
"""Memory outside of the OCaml heap: bigarrays, C stubs, the runtime itself (A13, A15 to A19, A28)."""
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs
from programs import Case, Recorded, is_5, run

MIB = 1 << 20


def program():
    """offheap.ml with stubs.c; the stubs' frames have names."""
    target = os.path.join(programs.WORK, "offheap")
    if not os.path.exists(target):
        folder = tempfile.mkdtemp(dir=programs.WORK)
        for name in ["offheap.ml", "stubs.c"]:
            shutil.copy(os.path.join(programs.SOURCE, "tests", "programs", name), folder)
        done = run([os.path.join(programs.BIN, "ocamlopt"), "-g", "-ccopt", "-g", "stubs.c", "offheap.ml", "-o", target],
                   cwd=folder)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
    return target


class OffHeap(Case):
    def record(self, how, interval="1", *options):
        recorded = self.same_as_untraced([program(), how], "--native-interval", interval, *options)
        info = self.sound(recorded)
        return recorded, info["native"]

    def blocks(self, recorded, live=False):
        """(function that called malloc, bytes, origin) of native blocks; live: of those without an end."""
        found = {}
        for e in recorded.events():
            key = (e.get("object_stream", e.get("stream")), e.get("object_seq"))
            if e["event"] == "alloc" and e["heap"] == "native":
                found[key] = ([f.get("function") for f in e["stack"]], e["bytes"], e["origin"])
            elif e["event"] == "collect" and live:
                found.pop(key, None)
        return list(found.values())

    def test_bigarray_kept_by_its_parts(self):
        recorded, native = self.record("sub")
        custom = native["origins"]["custom"]
        self.assertGreaterEqual(custom["live"]["bytes"], MIB)
        self.assertLess(custom["allocated"]["bytes"], 1.1 * MIB)  # a thousand parts add nothing
        data = [b for b in self.blocks(recorded, live=True) if b[1] == MIB]
        self.assertEqual(len(data), 1)
        self.assertIn("caml_ba_alloc", data[0][0])
        self.assertEqual(data[0][2], "custom")

    def test_bigarrays_made_and_dropped(self):
        _, native = self.record("loop")
        custom = native["origins"]["custom"]
        self.assertAlmostEqual(custom["allocated"]["bytes"], 50 * 8e6, delta=1e5)
        self.assertEqual(custom["live"]["bytes"], 0)

    def test_stub_that_keeps(self):
        """The OCaml heap is flat, and the stub's malloc is named."""
        recorded, native = self.record("keep")
        mine = [b for b in self.blocks(recorded, live=True) if "grab" in b[0]]
        self.assertEqual(sum(b[1] for b in mine), 10_000_000)
        self.assertEqual({b[2] for b in mine}, {"normal"})
        self.assertGreaterEqual(native["origins"]["program"]["live"]["bytes"], 10_000_000)
        self.assertTrue(all("stub_keep" in b[0] for b in mine))
        self.assertTrue(all(any(f is not None and "Offheap" in f for f in b[0]) for b in mine), mine[0])

    def test_leak_on_one_path(self):
        recorded, native = self.record("path")
        mine = [b for b in self.blocks(recorded, live=True) if "grab" in b[0]]
        self.assertEqual(len(mine), 200)
        done = run([programs.STATMEM, "top", "--source", "native", "--sort", "live", "--json", recorded.path])
        top = json.loads(done.stdout)["rows"][0]
        # The site's name is the function's, in the executable.
        self.assertGreaterEqual(top["live"]["bytes"], 1_000_000)

    def test_burst(self):
        """Nothing lives: what RSS keeps is the allocator's."""
        _, native = self.record("burst")
        self.assertLess(native["origins"]["program"]["live"]["bytes"], 200_000)
        self.assertGreaterEqual(native["origins"]["program"]["allocated"]["bytes"], 9_000_000)

    def test_through_the_runtimes_function(self):
        recorded, native = self.record("stat")
        mine = [b for b in self.blocks(recorded) if "stub_stat" in b[0]]
        self.assertEqual(len(mine), 1000)
        self.assertEqual({b[2] for b in mine}, {"normal"})

    def test_custom_blocks(self):
        recorded, _ = self.record("custom")
        mine = [b for b in self.blocks(recorded) if "stub_custom" in b[0]]
        self.assertGreaterEqual(len(mine), 500)
        self.assertEqual([b for b in self.blocks(recorded, live=True) if "stub_custom" in b[0]], [])

    def test_heap_growth_is_told_apart(self):
        _, native = self.record("heap")
        heap = native["origins"]["ocaml-heap"]
        self.assertGreater(heap["allocated"]["bytes"], 50_000_000)
        self.assertLess(native["origins"].get("program", {"allocated": {"bytes": 0}})["allocated"]["bytes"], 1_000_000)

    def memory(self, how):
        recorded = self.same_as_untraced([program(), how], "--counters-interval", "1ms")
        self.sound(recorded)
        done = run([programs.STATMEM, "memory", "--json", recorded.path])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def grown(self, memory, part):
        return memory["last"][part] - memory["first"].get(part, 0)

    def test_the_part_that_grew_outside_of_the_heap(self):
        """A17: OCaml's heap is flat, resident memory grows."""
        memory = self.memory("outside")
        self.assertEqual(memory["grew"], "native", memory["verdict"])
        self.assertIn("outside of OCaml's heap", memory["verdict"])
        # The runtime's own tables and, before OCaml 5, its minor heap come from malloc as well.
        self.assertTrue(39.5e6 <= self.grown(memory, "native") <= 47e6, memory["last"])
        self.assertLess(self.grown(memory, "heap"), 4e6)
        self.assertGreater(memory["growth"], 38e6)

    def test_the_part_that_grew_in_the_heap(self):
        memory = self.memory("filled")
        self.assertEqual(memory["grew"], "heap", memory["verdict"])
        self.assertTrue(40e6 <= self.grown(memory, "heap") <= 56e6, memory["last"])
        self.assertLess(self.grown(memory, "native"), 7e6)
        self.assertGreater(memory["growth"], 38e6)

    def test_collections_in_the_trace(self):
        """Readings of the runtime while it runs end in what it says at its end, and pauses are measured."""
        recorded = self.same_as_untraced([program(), "filled"], "--counters-interval", "1ms")
        readings = [e["counters"] for e in recorded.events() if e["event"] == "counters"]
        runtime = [r for r in readings if "heap_words" in r]
        end = self.sound(recorded)["end"]["gc"]
        self.assertGreater(len(runtime), 2)
        for name in ["heap_words", "major_words", "minor_collections", "gc_pauses", "gc_pause_ns"]:
            course = [r[name] for r in runtime if name in r]
            self.assertLessEqual(course[-1], end[name] if name != "heap_words" else 1 << 40, name)
            if name not in ["heap_words", "major_words"]:
                self.assertEqual(course, sorted(course), name)
        self.assertGreater(end["gc_pauses"], end["minor_collections"])
        self.assertGreaterEqual(end["gc_pause_ns"], end["gc_longest_pause_ns"])
        self.assertGreater(end["gc_longest_pause_ns"], 0)

    def test_sampled(self):
        """The leak's size within the interval, at usual rates."""
        for interval in ["4k", "64k", "512k"]:
            _, native = self.record("keep", interval, "--seed", "7")
            live = native["origins"]["program"]["live"]
            self.assertTrue(live["bytes_low"] * 0.7 <= 10_000_000 <= live["bytes_high"] * 1.3, (interval, live))

    def test_both_kinds_in_one_trace(self):
        recorded = Recorded([program(), "keep"], "--native-interval", "1", rate="1")
        info = self.sound(recorded)
        self.assertGreater(info["samples"], 100)
        self.assertGreater(info["native"]["allocated"]["samples"], 1000)
        only = Recorded([program(), "keep"], "--native-only", "--native-interval", "1")
        self.assertEqual(only.info()["samples"], 0)
        self.assertGreater(only.info()["native"]["allocated"]["samples"], 1000)
        none = Recorded([program(), "keep"], "--ocaml-only", rate="1")
        self.assertIsNone(none.info()["native"])
        self.assertEqual(none.info()["events"]["alloc_native"], 0)


if __name__ == "__main__":
    programs.main()
