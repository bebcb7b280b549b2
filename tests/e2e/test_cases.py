#!/usr/bin/env python3
"""Situations that people who profile memory have met; docs/testing.md lists them with their tests.

STATMEM_TEST_SLOW=1 (tools/run-tests --all sets it) repeats some with the full numbers."""
import json
import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs
from programs import Case, Recorded, compile, is_5, run

SLOW = os.environ.get("STATMEM_TEST_SLOW") == "1"


def peak_kb(text):
    return int([l for l in text.splitlines() if l.startswith("VmHWM:")][0].split()[1])


def limited(arguments, heap_bytes):
    """Runs with a limit on the memory that a process allocates (pages of mapped files do not count)."""
    return run(arguments, timeout=300,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (heap_bytes, heap_bytes)))


class Timeline(Case):
    def ordered(self, events):
        last, state = -1, {}
        for e in events:
            self.assertGreaterEqual(e["time_ns"], last, e)
            last = e["time_ns"]
            if e["event"] in ("alloc", "promote", "collect"):
                key = (e["object_stream"], e["object_seq"])
                before = {"alloc": [None], "promote": ["alloc"], "collect": ["alloc", "promote"]}[e["event"]]
                self.assertIn(state.get(key), before, e)
                state[key] = e["event"]
        return state

    def test_spawn_heavy(self):
        """A2: one timeline; every object is allocated, then promoted, then collected, each at most once."""
        if not is_5():
            self.skipTest("OCaml 5 only")
        recorded = Recorded([compile("signature"), "400"], rate="1")
        self.sound(recorded)
        self.assertGreater(len(self.ordered(recorded.events(stacks=False))), 8000)

    def test_promotions_in_order(self):
        recorded = Recorded([compile("promote"), "500"], rate="1")
        self.sound(recorded)
        events = recorded.events(stacks=False)
        self.ordered(events)
        self.assertGreater(sum(e["event"] == "promote" for e in events), 1000)

    def test_wall_clock_steps_back(self):
        """The wall clock is set back by 5 s while we record: times go forward all the same."""
        shim = os.path.join(programs.WORK, "clock_shim.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim,
                        os.path.join(programs.SOURCE, "tests", "programs", "clock_shim.c")], check=True)
        for clock in ["", "system"]:
            environment = dict(os.environ, LD_PRELOAD=shim, STATMEM_CLOCK=clock)
            recorded = Recorded([compile("alloc"), "2000"], rate="1e-2", environment=environment)
            self.assertEqual(recorded.code, 0, recorded.errors)
            info = self.sound(recorded)
            self.assertGreater(info["samples"], 10000)
            self.assertLess(info["duration_ns"], 100e9)
            self.ordered(recorded.events(stacks=False))


class GeneratedCode(Case):
    def test_far_lines_and_columns(self):
        """A3: what the runtime itself knows of a place is what the trace says, also after a conversion to memtrace's
        format as far as that has room."""
        source = os.path.join(programs.WORK, "gen_source.ml")
        folder = tempfile.mkdtemp(dir=programs.WORK)
        with open(os.path.join(folder, "far.ml"), "w") as f:
            f.write('# 1234567 "gen.ml"\nlet[@inline never] far_line n = Sys.opaque_identity (Array.make n 0)\n'
                    '# 77 "wide.ml"\n' + "let[@inline never] far_column n =" + " " * 3000
                    + "Sys.opaque_identity (Array.make n 0)\n# 5 \"main.ml\"\n"
                    "let () = for i = 1 to 100 do ignore (far_line i); ignore (far_column i) done\n")
        target = os.path.join(folder, "far")
        subprocess.run([os.path.join(programs.BIN, "ocamlopt"), "-g", "far.ml", "-o", target], cwd=folder, check=True)
        recorded = self.same_as_untraced([target], "--ocaml-only", rate="1")
        self.sound(recorded)
        converted = os.path.join(folder, "far.ctf")
        done = run([programs.STATMEM, "convert", "--to", "memtrace3", recorded.path, converted])
        self.assertEqual(done.returncode, 0, done.stderr)
        for path, memtrace in [(recorded.path, False), (converted, True)]:
            found, unmarked = {}, []
            for e in recorded.events(path):
                for frame in e.get("stack", []):
                    found.setdefault(frame.get("function"), set()).add(
                        (frame["file"], frame["line"], frame["start_char"]))
                    # The newer form's limit looks like any number to memtrace's format, which has no mark.
                    limits = (0xFFFFF,) if memtrace else (0xFFFFF, 0x7FFFF)
                    if frame["line"] in limits and not frame.get("clamped"):
                        unmarked.append(frame)
                    if frame["file"] == "wide.ml" and frame["start_char"] < 3000 and not frame.get("clamped"):
                        unmarked.append(frame)
            self.assertEqual(unmarked, [], path)
            # Compilers cut a line to 20 bits (to 19 in their newer form) and, in the older form, a column to 8.
            self.assertEqual({(f, l) for f, l, _ in found["Far.far_line"]} -
                             {("gen.ml", 1234567), ("gen.ml", 0xFFFFF), ("gen.ml", 0x7FFFF)}, set(), (path, found))
            wide = found["Far.far_column"]
            self.assertEqual({(f, l) for f, l, _ in wide}, {("wide.ml", 77)}, path)
            self.assertTrue(all(c in (0xFF, 0x3FF) or c >= 3000 for _, _, c in wide), (path, wide))
            self.assertEqual({f for f, _, _ in found["Far"]}, {"main.ml"}, path)


class ShortLived(Case):
    def test_domains(self):
        """A34: bounded memory, unique ids, nothing ascribed to another domain."""
        if not is_5():
            self.skipTest("OCaml 5 only")
        total = 100000 if SLOW else 4000
        program = compile("signature")
        plain = peak_kb(run([program, str(total)], timeout=300).stderr.decode())
        recorded = Recorded([program, str(total)], rate="0.1", timeout=300)
        self.assertEqual(recorded.code, 0, recorded.errors)
        info = self.sound(recorded)
        self.assertLess(peak_kb(recorded.errors) - plain, 40000)
        # The runtime's backup threads now and then have a sample of native memory.
        self.assertTrue(0 <= info["end"]["owners"] - (total + 1) <= 64, info["end"]["owners"])
        self.assertLessEqual(info["end"]["peak_streams"], 64)
        seen = {}
        for e in recorded.events(stacks=False):
            if e["event"] == "alloc" and e["heap"] != "native" and e["words"] >= 11 and e["domain"] != 0:
                seen.setdefault(e["domain"], set()).add(e["words"])
        wrong = [(d, w) for d, w in seen.items() if 11 + d % 97 not in w and 10 + d % 97 not in w]
        self.assertEqual(wrong, [])
        self.assertGreater(len(seen), 0.95 * total)

    def test_threads(self):
        """A34: 200 threads of 10 ms each."""
        programs.LIBRARIES["short_threads"] = ["unix", "threads"]
        recorded = self.same_as_untraced([compile("short_threads")], rate="1")
        info = self.sound(recorded)
        self.assertLessEqual(info["end"]["peak_streams"], 64)
        sizes = {}
        for e in recorded.events():
            if (e["event"] == "alloc" and e["heap"] != "native"
                    and any(f.get("function") == "Short_threads.signed" for f in e["stack"])):
                sizes.setdefault(e["words"], []).append(e["thread"])
        self.assertEqual(len(sizes), 200, sorted(sizes))
        for size, threads in sizes.items():
            self.assertEqual(len(threads), 10, size)
            self.assertEqual(len(set(threads)), 1, size)


class Full(Case):
    def test_disk_full(self):
        """A30: full in mid-run. The program does not notice; what was written is read; the loss is told."""
        place = tempfile.mkdtemp(dir=programs.WORK)
        if run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", place]).returncode != 0:
            self.skipTest("no right to mount")
        try:
            program, path = compile("alloc"), os.path.join(place, "trace.stm")
            plain = run([program, "4000"])
            done = run([programs.STATMEM, "record", "-q", "-r", "1", "--no-compress", "-o", path, "--",
                        program, "4000"])
            self.assertEqual((done.stdout, done.returncode), (plain.stdout, plain.returncode), done.stderr)
            self.assertLessEqual(len(done.stderr.decode().strip().split("\n")), 1, done.stderr)
            self.assertNotEqual(done.stderr, b"")
            info = json.loads(run([programs.STATMEM, "info", "--json", path]).stdout)
            self.assertGreater(info["samples"], 10000)
            self.assertNotEqual(info["losses"], [])
        finally:
            subprocess.run(["umount", "-l", place], check=False)

    def test_output_device_is_full(self):
        """/dev/full from the start."""
        program = compile("alloc")
        plain = run([program, "100"])
        done = run([programs.STATMEM, "record", "-r", "1", "-o", "/dev/full", "--", program, "100"])
        if done.stdout:  # started: then it is unharmed
            self.assertEqual((done.stdout, done.returncode), (plain.stdout, plain.returncode))
        else:
            self.assertEqual(done.returncode, 1)
        self.assertIn(b"/dev/full", done.stderr)


class Killed(Case):
    def started(self):
        folder = tempfile.mkdtemp(dir=programs.WORK)
        path = os.path.join(folder, "trace.stm")
        process = subprocess.Popen([programs.STATMEM, "record", "-r", "1e-2", "-o", path, "--", compile("alloc"),
                                    "100000000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + 20
        while time.monotonic() < until and not (os.path.exists(path) and os.path.getsize(path) > 0):
            time.sleep(0.01)
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
            child = int(f.read().split()[0])
        time.sleep(random.uniform(0.02, 0.3))
        return path, process, child

    def info(self, path):
        done = run([programs.STATMEM, "info", "--json", path])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_program_is_killed(self):
        """A32: at ten moments; the recorder closes the file."""
        for _ in range(10):
            path, process, child = self.started()
            os.kill(child, signal.SIGKILL)
            _, errors = process.communicate(timeout=30)
            self.assertEqual(process.returncode, -signal.SIGKILL, errors)
            self.assertEqual(os.listdir(os.path.dirname(path)), ["trace.stm"])
            info = self.info(path)
            self.assertEqual([l for l in info["losses"] if l["events"]], [])
            self.assertGreater(info["samples"], 0)

    def test_both_are_killed(self):
        """A32: nobody closes the file; the side file completes it, and a conversion makes it whole."""
        for _ in range(3):
            path, process, child = self.started()
            process.kill()
            os.kill(child, signal.SIGKILL)
            process.communicate(timeout=30)
            until = time.monotonic() + 10
            while time.monotonic() < until and os.path.exists("/proc/%d" % child):
                time.sleep(0.02)
            self.assertTrue(os.path.exists(path + ".tail"))
            open_info = self.info(path)
            self.assertEqual([l for l in open_info["losses"] if l["events"]], [])
            whole = path + ".whole.stm"
            done = run([programs.STATMEM, "convert", "--to", "native", path, whole])
            self.assertEqual(done.returncode, 0, done.stderr)
            closed = self.info(whole)
            self.assertEqual(closed["losses"], [])
            self.assertEqual(closed["samples"], open_info["samples"])
            self.assertEqual(closed["events"], open_info["events"])


class Sizes(Case):
    def test_no_sample(self):
        """A35: a trace without any."""
        recorded = self.same_as_untraced([compile("idle")], rate="1e-9")
        info = self.sound(recorded)
        self.assertEqual(info["samples"], 0)
        for command in [["info"], ["dump"], ["top"]]:
            done = run([programs.STATMEM] + command + [recorded.path])
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_large(self):
        """A35: a trace with a gap of a gigabyte (ten in the slow tier): little memory, both ends read."""
        recorded = Recorded([compile("alloc"), "2000"], "--no-compress", rate="0.1")
        self.sound(recorded)
        samples = recorded.info()["samples"]
        size = (10 if SLOW else 1) << 30
        with open(recorded.path, "r+b") as f:
            f.truncate(size)
        for command in [["info", "--json"], ["dump", "--no-stacks"], ["top"]]:
            done = limited([programs.STATMEM] + command + [recorded.path], 128 << 20)
            self.assertEqual(done.returncode, 0, (command, done.stderr[-500:]))
            if command[0] == "info":
                info = json.loads(done.stdout)
                self.assertEqual(info["samples"], samples)
                self.assertGreater(sum(l["bytes"] for l in info["losses"]), size - (100 << 20))


class Unbiased(Case):
    """Estimates of allocated words, in units of their standard deviation. OCaml's generator starts from a constant,
    so a length of work gives one fixed draw: the lengths differ. A correct program is outside 5.5 deviations once in
    26 million draws."""

    def z(self, samples, words, rate):
        return (samples - words * rate) / math.sqrt(words * rate * (1 - rate))

    def test_one_domain(self):
        program, runs = compile("alloc"), []
        for rate, start in [(1e-2, 150), (1e-3, 1500), (1e-4, 8000)]:
            for i in range(6):
                arguments = [program, str(start + 137 * i)]
                # The untraced program's counters: under a profile they hold the runtime's captured stacks too.
                text = run(arguments, env=dict(os.environ, OCAMLRUNPARAM="v=0x400")).stderr.decode()
                gc = {n: float(v) for n, v in re.findall(r"^(\w+_words):\s*([0-9.]+)", text, re.M)}
                words = gc["minor_words"] + gc["major_words"] - gc["promoted_words"]
                recorded = Recorded(arguments, "--no-compress", rate=repr(rate))
                info = self.sound(recorded)
                own = sum(o["samples"] for name, o in info["origins"].items() if name != "custom")
                runs.append(self.z(own, words, rate))
        self.assertLess(max(abs(z) for z in runs), 5.5, runs)
        self.assertLess(abs(sum(runs)) / math.sqrt(len(runs)), 5.5, runs)

    def test_domains(self):
        if not is_5():
            self.skipTest("OCaml 5 only")
        program, bad = compile("domains"), []
        for rate, rounds in [(1e-2, 300), (1e-3, 2000), (1e-4, 10000)]:
            for n in [1, 2, 4, 8, 16]:
                arguments = [program, str(n), str(rounds + 17 * n)]
                # The untraced program's counters: under a profile they hold the runtime's captured stacks too.
                plain = run(arguments).stdout.decode().splitlines()
                recorded = Recorded(arguments, "--no-compress", rate=repr(rate))
                self.assertEqual(recorded.code, 0, recorded.errors)
                info = self.sound(recorded)
                shares = {d["id"]: d["samples"] for d in info["domains"] if d["id"] != 0}
                self.assertEqual(sorted(shares), list(range(1, n + 1)))
                for line in plain:
                    domain, _, words = line.split()
                    z = self.z(shares[int(domain)], float(words), rate)
                    if abs(z) > 5.5:
                        bad.append((rate, n, domain, z))
        self.assertEqual(bad, [])


if __name__ == "__main__":
    programs.main()
