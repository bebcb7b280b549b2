#!/usr/bin/env python3
"""Small C and C++ programs, each of which does what is dangerous for a recorder of malloc, and real programs of the
distribution: they behave as without it, at several intervals, every allocation among them; and what is recorded
is right. Command line: SOURCE_ROOT BUILD_ROOT."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

SOURCE = BUILD = WORK = STATMEM = None
INTERVALS = ["1", "100", "4k", "512k"]
ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]


def run(arguments, **options):
    options.setdefault("timeout", 120)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(arguments, capture_output=True, **options)


def build(name, *flags, output=None, shared=False):
    """Compiles tests/hazards/NAME once; the test is skipped where there is no compiler."""
    cpp = os.path.exists(os.path.join(SOURCE, "tests/hazards", name + ".cpp"))
    compiler = shutil.which("c++" if cpp else "cc")
    if compiler is None:
        raise unittest.SkipTest("no compiler")
    target = os.path.join(WORK, output or name + (".so" if shared else ""))
    if not os.path.exists(target):
        source = os.path.join(SOURCE, "tests/hazards", name + (".cpp" if cpp else ".c"))
        done = run([compiler, "-g", "-O1", "-w", "-D_GNU_SOURCE", source, "-o", target, "-pthread", "-ldl"]
                   + (["-std=c++17"] if cpp else ["-fno-builtin"])
                   + (["-shared", "-fPIC"] if shared else []) + list(flags))
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
    return target


def library(name):
    for folder in ["/usr/lib/x86_64-linux-gnu", "/usr/lib", "/usr/local/lib"]:
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


class Recorded:
    def __init__(self, arguments, interval, *options, environment=None, cwd=None, timeout=120):
        self.folder = tempfile.mkdtemp(dir=WORK)
        self.path = os.path.join(self.folder, "trace.stm")
        self.done = run([STATMEM, "record", "-o", self.path, "--native-interval", interval, *options, "--", *arguments],
                        env=environment, cwd=cwd or self.folder, timeout=timeout)
        self.output, self.code = self.done.stdout, self.done.returncode
        self.errors = self.done.stderr.decode(errors="replace")

    def info(self):
        done = run([STATMEM, "info", "--json", self.path])
        if done.returncode != 0:
            raise AssertionError("info failed: " + done.stderr.decode() + self.errors)
        return json.loads(done.stdout)

    def events(self):
        done = run([STATMEM, "dump", "--json", self.path])
        return [json.loads(line) for line in done.stdout.splitlines()]


class Case(unittest.TestCase):
    def unharmed(self, arguments, intervals=None, environment=None, lossless=True, **more):
        """The last recording; each has the output and exit code of the plain program."""
        plain = run(arguments, env=environment, cwd=more.get("cwd"))
        for interval in intervals or INTERVALS:
            with self.subTest(interval=interval):
                recorded = Recorded(arguments, interval, environment=environment, **more)
                self.assertEqual(recorded.output, plain.stdout, recorded.errors)
                self.assertEqual(recorded.code, plain.returncode, recorded.errors)
                info = recorded.info()
                if lossless:
                    self.assertEqual(info["losses"], [], recorded.errors)
        return recorded


def in_work(event):
    return any(f.get("function") == "work" for f in event.get("stack", []))


class Hazards(Case):
    def test_entry_points(self):
        self.unharmed([build("entry_points"), "20"])

    def test_every_allocation_is_counted(self):
        """The oracle: two amounts of work; the difference of what was recorded is that of what the program counted."""
        seen, counted = [], []
        for rounds in ["10", "60"]:
            recorded = Recorded([build("entry_points"), rounds], "1")
            info = recorded.info()
            self.assertEqual(info["losses"], [])
            words = recorded.output.split()
            counted.append([int(words[i]) for i in (1, 3, 5)])
            self.assertEqual(words[7], b"0", recorded.output)
            native = info["native"]
            self.assertEqual(native["allocated"]["bytes_low"], native["allocated"]["bytes_high"])
            seen.append([native["allocated"]["samples"], native["allocated"]["bytes"], native["freed"]])
        self.maxDiff = None
        self.assertEqual([b - a for a, b in zip(*seen)], [b - a for a, b in zip(*counted)])
        self.assertGreater(counted[1][0] - counted[0][0], 500)

    def test_every_block_of_a_function(self):
        """By site as well: all of `work`'s blocks are there, each has its end, and none has two."""
        recorded = Recorded([build("entry_points", "-fno-omit-frame-pointer", output="entry_points_fp"), "25"], "1")
        words = recorded.output.split()
        events = recorded.events()
        blocks = {(e["stream"], e["object_seq"]): e["bytes"] for e in events if e["event"] == "alloc" and in_work(e)}
        self.assertEqual(len(blocks), int(words[1]))
        self.assertEqual(sum(blocks.values()), int(words[3]))
        ended = [(e["object_stream"], e["object_seq"]) for e in events if e["event"] == "collect"]
        self.assertEqual(len(ended), len(set(ended)))
        self.assertEqual(set(blocks) - set(ended), set())

    def test_threads(self):
        recorded = self.unharmed([build("threads")])
        recorded = Recorded([build("threads"), "x"], "1")
        info = recorded.info()
        self.assertEqual(info["losses"], [], recorded.errors)
        # Nothing of the program's own is left: every block that a thread freed for another had its end recorded.
        kept = {}
        for e in recorded.events():
            key = (e.get("object_stream", e.get("stream")), e.get("object_seq"))
            if e["event"] == "alloc":
                kept[key] = e
            elif e["event"] == "collect":
                self.assertIn(key, kept)
                del kept[key]
        mine = [e for e in kept.values()
                if any(f.get("function") in ("worker", "short_life", "destructor") for f in e["stack"][:2])]
        self.assertEqual(mine, [])
        self.assertLess(len(kept), 100)

    def test_foreign_frees_name_both_threads(self):
        recorded = Recorded([build("threads")], "1")
        foreign = [e for e in recorded.events() if e["event"] == "collect" and e["object_stream"] != e["stream"]]
        self.assertGreater(len(foreign), 2000)
        self.assertGreater(len({e["thread"] for e in foreign}), 3)

    def test_forks_and_programs(self):
        recorded = self.unharmed([build("forking")])
        self.assertGreater(recorded.info()["end"]["forks"], 50)

    def test_forks_followed(self):
        program = build("forking")
        plain = run([program])
        folder = tempfile.mkdtemp(dir=WORK)
        done = run([STATMEM, "record", "--follow-children", "--native-interval", "1", "-o", folder + "/t.%p.stm", "--",
                    program])
        self.assertEqual((done.stdout, done.returncode), (plain.stdout, plain.returncode), done.stderr)
        traces = [f for f in os.listdir(folder) if f.endswith(".stm")]
        self.assertGreater(len(traces), 60, done.stderr)
        children = 0
        for trace in traces:
            info = json.loads(run([STATMEM, "info", "--json", os.path.join(folder, trace)]).stdout)
            children += info["native"]["allocated"]["samples"] == 100
        self.assertGreaterEqual(children, 58)  # each allocates 100 blocks

    def test_signals_inside_of_hooks(self):
        program = build("signals")
        plain = run([program])
        recorded = Recorded([program, "report"], "1")
        self.assertEqual((recorded.output, recorded.code), (plain.stdout, plain.returncode), recorded.errors)
        inside = int(re.search(r"handlers inside: (\d+)", recorded.errors).group(1))
        if inside == 0:
            self.skipTest("no signal came at the right moment")
        info = recorded.info()
        lost = sum(l["events"] for l in info["losses"])
        self.assertEqual({l["kind"] for l in info["losses"]} - {"discarded"}, set())
        self.assertLessEqual(lost, 4 * inside)  # counted, and no more than the handlers did

    def test_stacks(self):
        self.unharmed([build("stacks")])

    def test_exceptions_and_jumps(self):
        self.unharmed([build("jumps")])

    def test_code_made_at_run_time(self):
        self.unharmed([build("jit")])

    def test_own_malloc(self):
        for flags, name in [((), "own_malloc"), (("-rdynamic",), "own_malloc_dynamic")]:
            program = build("own_malloc", *flags, output=name)
            recorded = self.unharmed([program])
            self.assertIn("malloc of its own", recorded.errors)
            verdict = json.loads(run([STATMEM, "doctor", "--json", program]).stdout)
            self.assertFalse(verdict["native_memory"])

    def test_calls_past_the_linker(self):
        recorded = self.unharmed([build("bypass")])
        # What was freed unseen is known as gone when its address comes again: blocks do not pile up.
        info = Recorded([build("bypass")], "1").info()
        self.assertLess(info["native"]["live"]["samples"], 1000)
        self.assertGreater(info["native"]["allocated"]["samples"], 20000)

    def test_loading_and_unloading(self):
        self.unharmed([build("loading"), build("plugin", shared=True)])

    def test_cancelled_threads(self):
        for _ in range(3):
            self.unharmed([build("cancelling")], intervals=["1"])

    def test_killed(self):
        """21: kill -9: all that was recorded is there."""
        program = build("entry_points")
        script = 'import os,ctypes\nl=[bytes(20000) for _ in range(3000)]\nos.kill(os.getpid(), 9)'
        recorded = Recorded(["/usr/bin/python3", "-c", script], "1")
        self.assertEqual(recorded.code, -signal.SIGKILL)
        events = recorded.info()
        self.assertGreater(events["native"]["allocated"]["bytes"], 3000 * 20000)
        self.assertEqual([l for l in events["losses"] if l["events"] > 0], [])
        self.assertIsNotNone(program)

    def test_descriptors(self):
        """The program closes ours, and puts its own files in their places: nothing gets into these, nothing is lost."""
        folder = tempfile.mkdtemp(dir=WORK)
        recorded = self.unharmed([build("descriptors"), folder], intervals=["1", "4k", "512k"])
        self.assertIn(b"the first descriptor is 3\nmy file has 0 bytes", recorded.output)
        info = Recorded([build("descriptors"), folder], "1").info()
        self.assertEqual(info["losses"], [])
        self.assertGreaterEqual(info["native"]["allocated"]["samples"], 6 * 20000)
        self.assertEqual(info["end"]["reason"], "program exit")

    def test_disk_full(self):
        """20: no room for the trace in the middle of the run."""
        program = build("entry_points")
        plain = run([program, "20000"])
        folder = tempfile.mkdtemp(dir=WORK)
        done = run([STATMEM, "record", "--no-compress", "-o", folder + "/t.stm", "--native-interval", "1", "--",
                    "sh", "-c", 'ulimit -f 4000; exec "$0" 20000', program])
        self.assertEqual((done.stdout, done.returncode), (plain.stdout, plain.returncode), done.stderr)
        info = json.loads(run([STATMEM, "info", "--json", folder + "/t.stm"]).stdout)
        self.assertGreater(info["native"]["allocated"]["samples"], 1000)
        self.assertGreater(sum(l["events"] for l in info["losses"]), 1000)

    def test_duration(self):
        script = "import time\nx=[]\nfor i in range(60):\n    x.append(bytes(100000)); time.sleep(0.02)"
        recorded = Recorded(["/usr/bin/python3", "-c", script], "1", "--duration", "300ms")
        info = recorded.info()
        self.assertEqual(info["end"]["reason"], "stopped")
        self.assertGreater(info["native"]["live"]["bytes"], 300000)
        self.assertLess(info["native"]["live"]["bytes"], 5500000)

    def test_environment(self):
        """The program sees the environment that it would have had; launchers hand the request on."""
        environment = {"PATH": os.environ["PATH"], "B": "2", "A": "1"}
        script = "import os\nprint(sorted(os.environ.items()))"
        self.unharmed(["/usr/bin/python3", "-c", script], environment=environment)
        recorded = Recorded(["sh", "-c", 'exec "$0" 20', build("entry_points")], "1")
        self.assertIn("entry_points", recorded.info()["header"]["executable"])
        self.assertGreater(recorded.info()["native"]["allocated"]["samples"], 200)


class Refused(Case):
    def test_static(self):
        target = os.path.join(WORK, "static")
        if run(["cc", "-static", "-w", os.path.join(SOURCE, "tests/hazards/jit.c"), "-o", target]).returncode != 0:
            self.skipTest("no static libc")
        recorded = Recorded([target], "1")
        self.assertEqual(recorded.code, 0)
        self.assertIn("statically linked", recorded.errors)
        self.assertFalse(os.path.exists(recorded.path))

    def test_musl(self):
        if shutil.which("musl-gcc") is None:
            self.skipTest("no musl-gcc")
        target = os.path.join(WORK, "musl")
        run(["musl-gcc", "-w", os.path.join(SOURCE, "tests/hazards/jit.c"), "-o", target])
        recorded = Recorded([target], "1")
        self.assertEqual(recorded.code, 1)
        self.assertIn("another C library", recorded.errors)
        self.assertIn("not started", recorded.errors)
        self.assertEqual(recorded.output, b"")

    def test_sanitizer(self):
        """33: its library insists on being the first."""
        target = os.path.join(WORK, "sanitized")
        if run(["gcc", "-fsanitize=address", "-w", os.path.join(SOURCE, "tests/hazards/jit.c"), "-o",
                target]).returncode != 0:
            self.skipTest("no sanitizer")
        recorded = Recorded([target], "1")
        self.assertEqual(recorded.code, 1)
        self.assertIn("sanitizer", recorded.errors)

    def test_options(self):
        for options, words in [(["--ocaml-only", "--native-only"], "--ocaml-only"),
                               (["--native-interval", "0"], "--native-interval"),
                               (["--native-interval", "x"], "--native-interval")]:
            done = run([STATMEM, "record", *options, "--", "true"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr.decode())


class OtherAllocators(Case):
    """14: allocators below us, preloaded or linked, and their own operators new and delete."""

    def test_preloaded(self):
        found = 0
        for name in ALLOCATORS:
            path = library(name)
            if path is None:
                continue
            found += 1
            environment = dict(os.environ, LD_PRELOAD=path)
            for program in ["threads", "jumps", "forking", "stacks"]:
                with self.subTest(allocator=name, program=program):
                    recorded = self.unharmed([build(program)], environment=environment, intervals=["1", "4k"])
            with self.subTest(allocator=name, program="operators"):
                info = Recorded([build("jumps"), "plain"], "1", environment=environment).info()
                # 1000 rounds of 20 strings (15 of them longer than what fits in place) and 7 other operators
                self.assertGreater(info["native"]["allocated"]["samples"], 1000 * 20)
                self.assertLess(info["native"]["live"]["samples"], 300)
        if found == 0:
            self.skipTest("none here")

    def test_linked(self):
        found = 0
        for name in ALLOCATORS:
            path = library(name)
            if path is None:
                continue
            found += 1
            with self.subTest(name):
                program = build("threads", path, output="threads-" + name)
                recorded = self.unharmed([program], intervals=["1", "4k"])
        if found == 0:
            self.skipTest("none here")

    def test_operators_count_once(self):
        """libstdc++'s operator new calls malloc: that is one block."""
        info = Recorded([build("jumps"), "plain"], "1").info()
        plain = info["native"]["allocated"]["samples"]
        for name in ALLOCATORS:
            path = library(name)
            if path is not None:
                other = Recorded([build("jumps"), "plain"], "1",
                                 environment=dict(os.environ, LD_PRELOAD=path)).info()
                self.assertLess(abs(other["native"]["allocated"]["samples"] - plain), 500, name)


class Companion(Case):
    """The recorder's thread in the program's process is no part of the program."""

    def same(self, what, **more):
        program = build("companion")
        plain = run([program, what])
        recorded = Recorded([program, what], "4k", "--counters-interval", "1ms", **more)
        self.assertEqual(recorded.output, plain.stdout, recorded.errors)
        self.assertEqual(recorded.code, plain.returncode, recorded.errors)
        info = recorded.info()
        self.assertEqual(info["losses"], [])
        self.assertEqual(info["end"]["reason"], "program exit")
        return [e for e in recorded.events() if e["event"] == "counters"], plain.stdout

    def test_the_process_ends_with_its_last_thread(self):
        _, output = self.same("first-thread-ends")
        self.assertEqual(output, b"the last thread ends\nat exit\n")

    def test_it_ends_however_seldom_readings_are(self):
        program = build("companion")
        path = os.path.join(tempfile.mkdtemp(dir=WORK), "t.stm")
        done = run([STATMEM, "record", "-o", path, "--counters-interval", "1h", "--", program, "first-thread-ends"], timeout=60)
        self.assertEqual((done.stdout, done.returncode), (b"the last thread ends\nat exit\n", 0))

    def test_readings_when_the_first_thread_has_ended(self):
        readings, _ = self.same("first-thread-ends")
        at = [e["time_ns"] for e in readings if "rss_bytes" in e["counters"]]
        self.assertGreater(at[-1] - at[0], 100e6)

    def test_readings_that_end_early(self):
        """Its files are closed: what follows is a gap, not a flat line."""
        recorded = Recorded([build("companion"), "all-closed"], "4k", "--counters-interval", "1ms")
        memory = json.loads(run([STATMEM, "memory", "--json", recorded.path]).stdout)
        self.assertGreaterEqual(memory["gaps"], 1)
        self.assertGreater(memory["gaps_ns"], 50e6)
        self.assertTrue(memory["verdict"].startswith("The readings end "), memory["verdict"])

    def test_what_the_system_grants_to_a_single_thread(self):
        readings, _ = self.same("single-thread")
        at = [e["time_ns"] for e in readings if "rss_bytes" in e["counters"]]
        self.assertGreater(at[-1] - at[0], 50e6)  # they go on afterwards

    def test_the_lowest_free_descriptor_is_the_programs(self):
        readings, output = self.same("lowest-descriptor")
        self.assertIn(b"0 wrong", output)
        self.assertGreater(len(readings), 20)

    def test_descriptors_closed_and_taken(self):
        readings, output = self.same("all-closed")
        self.assertIn(b"0 missing, at 26", output)
        self.assertNotIn(98, [e["counters"].get("threads") for e in readings])

    def test_signals_for_the_process(self):
        self.assertIn(b"signal 10", self.same("process-signal")[1])

    def test_forks(self):
        self.assertIn(b"50 children", self.same("forks")[1])

    def test_credentials(self):
        self.same("credentials")

    def test_threads_of_the_program_alone_are_counted(self):
        readings, _ = self.same("credentials")
        self.assertEqual({e["counters"]["threads"] for e in readings if "threads" in e["counters"]}, {1})

    def test_none_when_not_wanted(self):
        recorded = Recorded([build("companion"), "credentials"], "4k", "--counters-interval", "0")
        self.assertEqual([e for e in recorded.events() if e["event"] == "counters"], [])
        done = run([STATMEM, "memory", recorded.path])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"does not tell the memory of the process", done.stderr)

    def test_followed_children_have_their_own(self):
        folder, runtime = tempfile.mkdtemp(dir=WORK), tempfile.mkdtemp(dir=WORK)
        done = run([STATMEM, "record", "--follow-children", "--counters-interval", "1ms", "-o",
                    os.path.join(folder, "f.%p.stm"), "--", build("companion"), "forks"],
                   env=dict(os.environ, XDG_RUNTIME_DIR=runtime))
        self.assertIn(b"50 children", done.stdout)
        traces = sorted(f for f in os.listdir(folder) if f.endswith(".stm"))
        self.assertEqual(len(traces), 51)
        left = os.listdir(runtime + "/statmem")
        self.assertEqual(left, [], "sockets of children that ended by _exit")
        for trace in traces[:5]:
            dump = run([STATMEM, "dump", os.path.join(folder, trace)]).stdout
            self.assertIn(b"rss_bytes=", dump, trace)


class Memory(Case):
    """The part of the resident memory that grew is found, and by how much. A program grows by 64 MiB in a way that is known."""
    GROWTH, SLACK = 64 << 20, 4 << 20

    def memory(self, how, environment=None):
        recorded = Recorded([build("growth"), how], "512k", "--counters-interval", "20ms", environment=environment)
        done = run([STATMEM, "memory", "--json", recorded.path])
        self.assertEqual(done.returncode, 0, done.stderr)
        memory = json.loads(done.stdout)
        for moment in memory["moments"]:
            parts = sum(moment.get(k, 0) for k in ("file", "heap", "native", "kept", "unexplained"))
            # Readings of the system are a few pages apart.
            self.assertAlmostEqual(parts - moment.get("absent", 0), moment["rss"], delta=1 << 20, msg=moment)
        return memory

    def grown(self, memory, part):
        return memory["last"][part] - memory["first"][part]

    def holds(self, how, part, **more):
        memory = self.memory(how, **more)
        self.assertEqual(memory["grew"], part, memory["verdict"])
        self.assertAlmostEqual(self.grown(memory, part), self.GROWTH, delta=self.SLACK)
        self.assertAlmostEqual(memory["growth"], self.GROWTH, delta=2 * self.SLACK)
        return memory

    def test_a_leak_of_malloc(self):
        memory = self.holds("leak", "native")
        self.assertGreater(len(memory["moments"]), 10)
        course = [m["native"] for m in memory["moments"]]
        self.assertEqual(course, sorted(course))

    def test_memory_of_mmap(self):
        self.holds("mapped", "unexplained")

    def test_a_mapped_file(self):
        self.holds("file", "file")

    def test_free_memory_that_malloc_keeps(self):
        memory = self.holds("kept", "kept")
        self.assertIn("That is no leak", memory["verdict"])
        self.assertGreater(max(m["native"] for m in memory["moments"]), self.GROWTH * 0.9)

    def test_memory_that_was_never_touched(self):
        memory = self.memory("untouched")
        self.assertIsNone(memory["grew"])
        self.assertAlmostEqual(memory["last"]["absent"], self.GROWTH, delta=self.SLACK)
        self.assertAlmostEqual(self.grown(memory, "native"), self.GROWTH, delta=self.SLACK)

    def test_other_allocators_tell_themselves(self):
        found = 0
        for name in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"]:
            path = library(name)
            if path is None:
                continue
            found += 1
            with self.subTest(allocator=name):
                self.holds("leak", "native", environment=dict(os.environ, LD_PRELOAD=path))
        if found == 0:
            self.skipTest("no other allocator here")

    def test_text_and_csv(self):
        recorded = Recorded([build("growth"), "leak"], "512k", "--counters-interval", "20ms")
        text = run([STATMEM, "memory", recorded.path]).stdout.decode()
        self.assertRegex(text, r"native memory in use \(malloc\) .*\+6[0-9]\.\d MB")
        self.assertIn("statmem top -w live@end tells who holds it", text)
        rows = run([STATMEM, "memory", "--csv", recorded.path]).stdout.decode().splitlines()
        self.assertEqual(rows[0], "ns,rss,file,heap,native,kept,unexplained,absent")
        self.assertEqual(rows[-1].split(",")[3], "")  # no OCaml
        self.assertGreater(int(rows[-1].split(",")[4]), self.GROWTH)


class RealPrograms(Case):
    """Programs of the distribution, the same output at every interval."""

    def have(self, name):
        path = shutil.which(name, path="/usr/bin:/bin:/usr/sbin")
        if path is None:
            self.skipTest("no " + name)
        return path

    def test_python(self):
        script = ("import json,re,threading,collections\n"
                  "d=collections.OrderedDict((str(i),[i]*50) for i in range(20000))\n"
                  "t=[threading.Thread(target=lambda: json.loads(json.dumps(d))) for _ in range(4)]\n"
                  "[x.start() for x in t];[x.join() for x in t]\n"
                  "print(len(json.dumps(d)), len(re.findall('1+', json.dumps(d))))")
        recorded = self.unharmed([self.have("python3"), "-c", script])
        self.assertGreater(recorded.info()["native"]["allocated"]["samples"], 20)

    def test_sqlite(self):
        sql = ("create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<20000) "
               "insert into t select x, hex(x*x) from c; select count(*), sum(length(b)) from t; "
               "select b from t order by b desc limit 5;")
        self.unharmed([self.have("sqlite3"), ":memory:", sql])

    def test_git(self):
        git = self.have("git")
        folder = tempfile.mkdtemp(dir=WORK)
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
        run([git, "init", "-q", "."], cwd=folder, env=environment)
        for i in range(200):
            with open(os.path.join(folder, "f%d" % i), "w") as f:
                f.write("line %d\n" % i * 100)
        run([git, "add", "."], cwd=folder, env=environment)
        run([git, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"], cwd=folder, env=environment)
        self.unharmed([git, "log", "--stat", "-p"], cwd=folder, environment=environment)
        self.unharmed([git, "grep", "-c", "line"], cwd=folder, environment=environment)

    def test_gcc(self):
        gcc = self.have("gcc")
        source = os.path.join(WORK, "big.c")
        with open(source, "w") as f:
            f.write("#include <stdio.h>\n" + "".join("int f%d(int x) { return x * %d + f%d(x - 1); }\n" % (i, i, i)
                                                    for i in range(1, 800)))
        self.unharmed([gcc, "-O1", "-S", "-o", "-", source], intervals=["1", "512k"])
        # The compiler proper is a child.
        done = run([STATMEM, "record", "--follow-children", "-o", os.path.join(WORK, "gcc.%p.stm"), "--native-interval",
                    "1000", "--", gcc, "-O1", "-S", "-o", "-", source])
        self.assertEqual(done.stdout, run([gcc, "-O1", "-S", "-o", "-", source]).stdout)
        self.assertGreaterEqual(len([f for f in os.listdir(WORK) if f.startswith("gcc.")]), 2)


def main():
    global SOURCE, BUILD, WORK, STATMEM
    SOURCE, BUILD = sys.argv[1:3]
    STATMEM = os.path.join(BUILD, "statmem")
    for name in list(os.environ):
        if name.startswith(("STATMEM_", "LD_PRELOAD")):
            del os.environ[name]
    os.environ.pop("MALLOC_PERTURB_", None)
    with tempfile.TemporaryDirectory(prefix="statmem-hazards-") as WORK:
        unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)


if __name__ == "__main__":
    main()
