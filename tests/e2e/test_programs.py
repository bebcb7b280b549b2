#!/usr/bin/env python3
"""Programs of every kind under `statmem record`: the program is unharmed, and the trace holds what it should."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs
from programs import Case, Recorded, compile, is_5, run


class Transparency(Case):
    """The program's output, exit status and environment stay as they are without us."""

    def test_output_at_every_rate(self):
        program = compile("alloc")
        for rate in ["1e-6", "1e-4", "1e-2", "1"]:
            recorded = self.same_as_untraced([program, "100"], rate=rate)
            self.sound(recorded)

    def test_ways_to_end(self):
        program = compile("ending")
        for how in ["return", "exit3", "exception", "_exit", "kill", "segv", "term", "stack"]:
            with self.subTest(how):
                recorded = self.same_as_untraced([program, how])
                info = recorded.info()
                self.assertGreater(info["events"]["alloc_minor"], 1000)
                # Every way to end gives the same work: 2000 lists of 100 cells, a sample in 100 words.
                self.assertAlmostEqual(info["samples"], 6000, delta=500)
                self.assertEqual([l for l in info["losses"] if l["events"] > 0], [])

    def test_environment(self):
        program = compile("environment")
        base = {"PATH": os.environ["PATH"], "ZED": "1", "ALPHA": "2", "EMPTY": ""}
        for extra in [{}, {"LD_PRELOAD": ""}, {"STATMEM_FORCE": "1"}, {"MEMTRACE_RATE": "0.5"}]:
            with self.subTest(extra):
                environment = dict(base)
                environment.update(extra)
                recorded = self.same_as_untraced([program, "a", "b c"], environment=environment)
                self.assertIn(b"ALPHA=2\n", recorded.output)
                self.assertNotIn(b"libstatmem", recorded.output)
                self.assertGreater(recorded.info()["samples"], 0)

    def test_users_preload_is_kept(self):
        other = os.path.join(programs.WORK, "other.so")
        if not os.path.exists(other):
            source = os.path.join(programs.WORK, "other.c")
            with open(source, "w") as f:
                f.write("int statmem_test_other;\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", other, source], check=True)
        environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": other, "LAST": "1"}
        recorded = self.same_as_untraced([compile("environment")], environment=environment)
        self.assertIn(("LD_PRELOAD=" + other + "\n").encode(), recorded.output)

    def test_a_wrapper_keeps_the_pid(self):
        program = compile("alloc")
        recorded = self.same_as_untraced(["sh", "-c", 'exec "$0" 50', program])
        self.assertGreater(recorded.info()["samples"], 100)
        recorded = self.same_as_untraced(["env", "A=1", "nice", program, "50"])
        self.assertGreater(recorded.info()["samples"], 100)

    def test_interrupt_goes_to_the_program(self):
        program = compile("ending")
        folder = tempfile.mkdtemp(dir=programs.WORK)
        path = os.path.join(folder, "trace.stm")
        process = subprocess.Popen([programs.STATMEM, "record", "-r", "1e-2", "-o", path, "--", program, "sleep",
                                    "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as from the keyboard: the whole group
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, -signal.SIGINT, errors)
        self.assertIn(b"samples", errors)
        self.assertEqual(run([programs.STATMEM, "info", path]).returncode, 0)

    def test_terminate_is_handed_on(self):
        program = compile("ending")
        process = subprocess.Popen([programs.STATMEM, "record", "-q", "-o", os.path.join(programs.WORK, "term.stm"),
                                    "--", program, "sleep", "30"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_compiler_makes_the_same_code(self):
        """A real program: ocamlopt.opt on a real file, byte-identical output, at a high rate."""
        compiler = os.path.join(programs.BIN, "ocamlopt.opt")
        results = []
        for traced in [False, True]:
            folder = tempfile.mkdtemp(dir=programs.WORK)
            with open(os.path.join(folder, "m.ml"), "w") as f:
                for i in range(300):
                    f.write("let f%d x y = match x with Some z -> (z + y, [z; y; %d]) | None -> (y, [])\n" % (i, i))
            command = [compiler, "-g", "-c", "m.ml"]
            if traced:
                recorded = Recorded(command, rate="1e-2", cwd=folder, timeout=300)
                self.assertEqual(recorded.code, 0, recorded.errors)
                info = self.sound(recorded)
                self.assertGreater(info["samples"], 10000)
            else:
                subprocess.run(command, cwd=folder, check=True)
            contents = []
            for name in ["m.cmi", "m.cmx"]:
                with open(os.path.join(folder, name), "rb") as f:
                    contents.append(f.read())
            text = run(["objdump", "-d", "-s", "-j", ".text", "-j", ".data", "m.o"], cwd=folder).stdout
            results.append((contents, text))
        self.assertEqual(results[0], results[1])


    def test_programs_of_the_distribution(self):
        """Unmodified programs of others, when they are here and of this compiler's version."""
        found = 0
        folder = tempfile.mkdtemp(dir=programs.WORK)
        with open(os.path.join(folder, "g.mly"), "w") as f:
            f.write("%token <int> A\n%token PLUS EOF\n%left PLUS\n%start <int> main\n%type <int> e\n%%\n"
                    "main: x = e EOF { x }\ne: x = A { x } | x = e PLUS y = e { x + y }\n")
        with open(os.path.join(folder, "x.ml"), "w") as f:
            f.write("let x = 1\n")
        for command, made in [(["menhir", "--dump", "g.mly"], "g.ml"), (["ocamlfind", "list"], None),
                              (["unison", "-version"], None), (["ocamldep.opt", "x.ml"], None)]:
            program = shutil.which(command[0])
            if program is None:
                continue
            verdict = json.loads(run([programs.STATMEM, "doctor", "--json", program]).stdout)
            if not verdict.get("ocaml_version", "").startswith(programs.VERSION):
                continue
            found += 1
            with self.subTest(command[0]):
                plain = run(command, cwd=folder)
                before = open(os.path.join(folder, made)).read() if made else None
                recorded = Recorded(command, rate="1e-2", cwd=folder)
                self.assertEqual((recorded.output, recorded.code), (plain.stdout, plain.returncode))
                self.assertGreater(self.sound(recorded)["samples"], 20)
                if made:
                    self.assertEqual(open(os.path.join(folder, made)).read(), before)
        if found == 0:
            self.skipTest("none here")

    def test_the_runtime_frees_itself(self):
        environment = dict(os.environ, OCAMLRUNPARAM="c")
        recorded = self.same_as_untraced([compile("alloc"), "100"], environment=environment)
        self.assertEqual(self.sound(recorded)["end"]["gc"], {})

    def test_counters_at_the_end(self):
        """END holds the runtime's own figures."""
        recorded = self.same_as_untraced([compile("alloc"), "300"], rate="1e-6")
        gc = recorded.info()["end"]["gc"]
        text = run([compile("alloc"), "300"], env=dict(os.environ, OCAMLRUNPARAM="v=0x400")).stderr.decode()
        for name in ["minor_words", "promoted_words", "minor_collections"]:
            counted = float(re.search(r"^" + name + r":\s*([0-9.]+)", text, re.M).group(1))
            self.assertAlmostEqual(gc[name], counted, delta=0.02 * counted + 1)


class Oracle(Case):
    """At rate 1 every word is a sample: the trace must equal the runtime's own counters."""

    def counters(self, arguments):
        """Words that OCaml code and the runtime allocated, as the runtime prints them at the end."""
        environment = dict(os.environ, OCAMLRUNPARAM="v=0x400")
        text = run(arguments, env=environment).stderr.decode()
        def figure(name):
            return int(float(re.search(r"^" + name + r":\s*([0-9.]+)", text, re.M).group(1)))
        return figure("minor_words"), figure("major_words") - figure("promoted_words")

    def words(self, recorded):
        """Words in blocks of the minor heap and in blocks made in the major heap; memory that belongs to custom
        blocks lies outside."""
        self.sound(recorded)
        words = {"minor": 0, "major": 0}
        for event in recorded.events(stacks=False):
            if event["event"] == "alloc" and event["origin"] != "custom" and event["heap"] != "native":
                words[event["heap"]] += event["samples"]
        return words["minor"], words["major"]

    def test_total_words(self):
        """Two amounts of work: the difference is exact, and what remains (the start of the runtime before
        its first OCaml code) is small."""
        program = compile("alloc")
        counted, seen = [], []
        for rounds in ["20", "120"]:
            counted.append(self.counters([program, rounds]))
            seen.append(self.words(self.same_as_untraced([program, rounds], rate="1")))
        self.assertEqual(seen[1][0] - seen[0][0], counted[1][0] - counted[0][0])
        self.assertEqual(seen[1][1] - seen[0][1], counted[1][1] - counted[0][1])
        self.assertLess(abs(seen[0][0] - counted[0][0]), 300)

    def test_block_counts(self):
        """Counts at the allocation's site are exact, and so is every size."""
        recorded = self.same_as_untraced([compile("cells")], rate="1")
        cells = [e for e in recorded.events() if e["event"] == "alloc"
                 and e["stack"] and e["stack"][0].get("function") == "Cells.build"]
        self.assertEqual(len(cells), 20 * 100)
        self.assertEqual({(e["words"], e["samples"], e["heap"]) for e in cells}, {(2, 3, "minor")})
        # The list is built from its end: 1 to 100 frames of build, then the module.
        depths = sorted(sum(f.get("function") == "Cells.build" for f in e["stack"]) for e in cells)
        self.assertEqual(depths, sorted(list(range(1, 101)) * 20))


class Domains(Case):
    """A1: every domain's share is there."""

    def setUp(self):
        if not is_5():
            self.skipTest("OCaml 5 only")

    def test_exact_share_of_every_domain(self):
        program = compile("domains")
        for n in [1, 2, 4, 8]:
            with self.subTest(n):
                recorded = Recorded([program, str(n), "300"], rate="1")
                self.assertEqual(recorded.code, 0, recorded.errors)
                info = self.sound(recorded)
                plain = run([program, str(n), "300"]).stdout.decode().split("\n")
                by_id = {d["id"]: d for d in info["domains"]}
                self.assertEqual(sorted(by_id), list(range(n + 1)))
                for line in plain[:-1]:
                    domain, _, words = line.split()
                    # The worker's counter, and the few words before and after it.
                    extra = by_id[int(domain)]["samples"] - int(words)
                    self.assertTrue(0 <= extra < 60, (line, by_id[int(domain)]))

    def test_sampled_share_of_every_domain(self):
        program = compile("domains")
        recorded = Recorded([program, "4", "20000"], rate="1e-3")
        self.assertEqual(recorded.code, 0, recorded.errors)
        info = self.sound(recorded)
        for domain in info["domains"]:
            if domain["id"] != 0:  # 6 million words each: 6000 samples, standard deviation 77
                self.assertAlmostEqual(domain["samples"], 6000, delta=5 * 78)

    def test_a_hundred_domains_one_after_the_other(self):
        recorded = Recorded([compile("domains"), "100", "20"], rate="1")
        self.assertEqual(recorded.code, 0, recorded.errors)
        info = self.sound(recorded)
        self.assertEqual(len(info["domains"]), 101)


class Processes(Case):
    def test_fork_leaves_the_parents_trace_alone(self):
        """A5: the child allocates ten times as much, silently."""
        recorded = self.same_as_untraced([compile("forking")], rate="1")
        info = self.sound(recorded)
        self.assertLess(abs(info["samples"] - 600000), 50000)
        self.assertEqual(info["end"]["forks"], 1)
        self.assertEqual(len(recorded.files()), 1)
        self.assertIn("--follow-children", recorded.errors)

    def test_fork_followed(self):
        recorded = Recorded([compile("forking")], "--follow-children", rate="1", name="trace.%p.stm")
        files = recorded.files()
        self.assertEqual(len(files), 2, recorded.errors)
        samples = sorted(recorded.info(f)["samples"] for f in files)
        self.assertLess(abs(samples[0] - 600000), 50000)
        self.assertLess(abs(samples[1] - 6000000), 100000)
        for f in files:
            self.sound(recorded, f)

    def test_daemon(self):
        """A6: no silent, nearly empty trace."""
        for follow in [False, True]:
            mark = os.path.join(tempfile.mkdtemp(dir=programs.WORK), "done")
            options = ["--follow-children"] if follow else []
            recorded = Recorded([compile("daemon"), mark], *options, rate="1e-2",
                                name="trace.%p.stm" if follow else None)
            for _ in range(200):
                if os.path.exists(mark):
                    break
                time.sleep(0.05)
            self.assertTrue(os.path.exists(mark), "the daemon was harmed")
            time.sleep(0.2)
            if follow:
                self.assertEqual(len([f for f in recorded.files() if f.endswith(".stm")]), 2)
            else:
                self.assertIn("forked", recorded.errors)
                self.assertIn("--follow-children", recorded.errors)

    def test_children_are_not_traced_unless_asked(self):
        """A38"""
        program, other = compile("children"), compile("alloc")
        for how in ["exec", "system", "pipeline", "spawn"]:
            with self.subTest(how):
                recorded = self.same_as_untraced([program, how, other])
                self.assertEqual(len(recorded.files()), 1)
                self.assertEqual([n for n in recorded.functions() if n.startswith("Alloc.")], [])
                followed = self.same_as_untraced([program, how, other], "--follow-children", "--ocaml-only",
                                                 name="trace.%p.stm")
                self.assertEqual(len(followed.files()), 2, followed.errors)
                executables = {os.path.basename(followed.info(f)["header"]["executable"]) for f in followed.files()}
                self.assertEqual(executables, {"children", "alloc"})
                # With native memory, the shell and its other commands have traces as well.
                followed = self.same_as_untraced([program, how, other], "--follow-children", name="trace.%p.stm")
                executables = {os.path.basename(followed.info(f)["header"]["executable"]) for f in followed.files()}
                self.assertGreaterEqual(executables, {"children", "alloc"})
                self.assertEqual(len(executables) > 2, how in ["system", "pipeline"], executables)

    def test_a_shell_that_starts_ocaml(self):
        shell = ["sh", "-c", '"$0" 20; true', compile("alloc")]
        recorded = self.same_as_untraced(shell, "--ocaml-only")
        self.assertEqual(recorded.files(), [])
        self.assertIn("--follow-children", recorded.errors)
        recorded = self.same_as_untraced(shell)
        self.assertEqual(len(recorded.files()), 1)  # the shell's own native memory
        self.assertEqual(recorded.info()["samples"], 0)
        self.assertIn("1 OCaml child process was not recorded", recorded.errors)
        followed = self.same_as_untraced(["sh", "-c", '"$0" 20; "$0" 30', compile("alloc")], "--follow-children",
                                         "--ocaml-only", name="trace.%p.stm")
        self.assertEqual(len(followed.files()), 2)


class Runtime(Case):
    def test_promotions_at_rate_1(self):
        """A11"""
        recorded = self.same_as_untraced([compile("promote"), "2000"], rate="1")
        info = self.sound(recorded)
        self.assertGreater(info["events"]["promote"], 20000)
        self.assertGreater(info["events"]["collect"], 20000)
        self.assertGreaterEqual(info["max_depth"], 1000)

    def test_own_memprof(self):
        """A31: the program's own profile sees all it should, and we say that ours ended."""
        for bytecode in [False, True]:
            program = compile("own_memprof", bytecode=bytecode, output="own_memprof%d" % bytecode)
            # Native memory goes on being recorded.
            for options, reason in [(["--ocaml-only"], "stopped"), (["--native-interval", "1"], "program exit")]:
                recorded = self.same_as_untraced([program], *options, rate="1")
                self.assertIn(b"30000 samples", recorded.output)
                self.assertIn("started Gc.Memprof itself", recorded.errors)
                info = recorded.info()
                self.assertEqual(info["end"]["reason"], reason)
                self.assertGreater(info["samples"], 60000)  # what came before
                self.assertLess(info["samples"], 200000)
            doctor = run([programs.STATMEM, "doctor", "--json", program])
            self.assertEqual(json.loads(doctor.stdout)["uses_memprof"], not bytecode)

    def test_threads(self):
        """A36: stacks of the right thread."""
        recorded = self.same_as_untraced([compile("threads")], rate="0.1")
        self.sound(recorded)
        by_thread = {}
        for event in recorded.events():
            names = [f.get("function", "") for f in event.get("stack", [])]
            mine = [n for n in names if n in ("Threads.first_worker", "Threads.second_worker")]
            self.assertLessEqual(len(set(mine)), 1)
            if mine:
                key = (event.get("tid") or event.get("thread") or event.get("stream"), mine[0])
                by_thread[key] = by_thread.get(key, 0) + 1
        workers = [name for _, name in by_thread]
        self.assertEqual(sorted(set(workers)), ["Threads.first_worker", "Threads.second_worker"])

    def test_effects(self):
        """A36: a generator's stack shows the fiber, and who resumed it."""
        if not is_5():
            self.skipTest("OCaml 5 only")
        recorded = self.same_as_untraced([compile("effects")], rate="1e-2")
        self.sound(recorded)
        in_generator = resumed = 0
        for event in recorded.events():
            names = [f.get("function", "") for f in event.get("stack", [])]
            if "Effects.in_generator" in names:
                in_generator += 1
                self.assertIn("Effects.generator", names)
                resumed += any(n.startswith("Effects.resume_") for n in names)
        self.assertGreater(in_generator, 1000)

    def test_raising_signal_handler(self):
        """A37"""
        for rate in ["1e-2", "1"]:
            recorded = self.same_as_untraced([compile("raising_signal")], rate=rate)
            self.sound(recorded)

    def test_plugin(self):
        """A39: frames of a plugin that was loaded at run time are named."""
        plugin = compile("plugin", "-shared", output="plugin.cmxs", inputs=["plugin_api.ml", "plugin.ml"])
        folder = tempfile.mkdtemp(dir=programs.WORK)
        for name in ["plugin_api.ml", "plugin.ml", "plugin_host.ml"]:
            with open(os.path.join(programs.SOURCE, "tests", "programs", name)) as f:
                text = f.read()
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        ocamlopt = os.path.join(programs.BIN, "ocamlopt")
        dynlink = programs.libraries(["dynlink"])
        for arguments in [["-g", "-c", "plugin_api.ml"], ["-g", "-shared", "plugin.ml", "-o", "plugin.cmxs"],
                          ["-linkall", "-g"] + dynlink + ["plugin_api.cmx", "plugin_host.ml", "-o", "host"]]:
            subprocess.run([ocamlopt] + arguments, cwd=folder, check=True)
        self.assertTrue(plugin)
        recorded = self.same_as_untraced([os.path.join(folder, "host"), os.path.join(folder, "plugin.cmxs")])
        self.sound(recorded)
        self.assertIn("Plugin.made_in_plugin", recorded.functions())

    def test_sources(self):
        """A24: unmarshalling is told apart, and memory of custom blocks."""
        recorded = self.same_as_untraced([compile("marshal")])
        info = self.sound(recorded)
        self.assertGreater(info["origins"]["unmarshalled"]["samples"]
                           if "unmarshalled" in info["origins"] else info["origins"]["marshal"]["samples"], 3000)
        self.assertGreater(info["origins"]["custom"]["samples"], 1000)

    def test_bytecode(self):
        program = compile("alloc", bytecode=True, output="alloc.byte")
        recorded = self.same_as_untraced([program, "100"])
        info = self.sound(recorded)
        self.assertEqual(info["header"]["ocaml_kind"], "bytecode")
        self.assertIn("Alloc.build", recorded.functions())
        custom = compile("alloc", "-custom", bytecode=True, output="alloc.custom")
        recorded = self.same_as_untraced([custom, "100"])
        self.assertGreater(recorded.info()["samples"], 1000)

    def test_deep_stacks(self):
        """The innermost and the outermost frames stay."""
        recorded = self.same_as_untraced([compile("promote"), "2000"], "--depth", "64")
        info = self.sound(recorded)
        self.assertGreater(info["stacks"]["cut"], 0)
        deep = [e for e in recorded.events() if e["event"] == "alloc" and e.get("stack_cut")]
        names = [f.get("function") for f in deep[0]["stack"]]
        self.assertEqual(names[0].split(".")[0] in ("Promote", "Stdlib__List", "Stdlib__Map"), True, names)
        self.assertTrue(any(f.get("cut") for f in deep[0]["stack"]))
        self.assertLessEqual(len(deep[0]["stack"]), 70)


class Builds(Case):
    """A40: however the program was built."""

    def check(self, program, named=True):
        recorded = self.same_as_untraced([program, "100"])
        self.sound(recorded)
        if named:
            self.assertIn("Alloc.build", recorded.functions())
        return recorded

    def test_without_g(self):
        self.check(compile("alloc", debug=False, output="alloc-nog"))

    def test_stripped(self):
        program = compile("alloc", debug=False, output="alloc-stripped")
        subprocess.run(["strip", program], check=True)
        self.check(program)

    def test_not_exported(self):
        program = compile("alloc", "-ccopt", "-Wl,--no-export-dynamic", output="alloc-noexport")
        self.check(program)

    def test_not_position_independent(self):
        self.check(compile("alloc", "-ccopt", "-no-pie", output="alloc-nopie"))

    def test_hidden_and_stripped_is_refused(self):
        program = compile("alloc", "-ccopt", "-Wl,--no-export-dynamic", output="alloc-hidden")
        subprocess.run(["strip", program], check=True)
        self.refused(program, "stripped")

    def test_the_words_of_a_runtime_are_not_one(self):
        """statmem itself knows them all."""
        recorded = run([programs.STATMEM, "record", "-o", os.path.join(programs.WORK, "self.stm"), "--",
                        programs.STATMEM, "--version"])
        self.assertEqual(recorded.returncode, 0)
        self.assertIn(b"native memory", recorded.stderr)
        self.assertNotIn(b"OCaml", recorded.stderr)

    def test_too_few_descriptors(self):
        trace = os.path.join(programs.WORK, "few.stm")
        recorded = run(["sh", "-c", 'ulimit -n 12; exec "$0" "$@"', programs.STATMEM, "record", "-o", trace, "--",
                        "echo", "ran"])
        self.assertEqual((recorded.returncode, recorded.stdout), (1, b""))
        self.assertIn(b"the limit of 12 open files", recorded.stderr)
        self.assertFalse(os.path.exists(trace))

    def test_static_is_refused(self):
        self.refused(compile("alloc", "-ccopt", "-static", output="alloc-static"), "statically linked")

    def test_embedded_bytecode_is_refused(self):
        self.refused(compile("alloc", "-output-complete-exe", bytecode=True, output="alloc-embedded"),
                     "-output-complete-exe")

    def refused(self, program, reason):
        recorded = self.same_as_untraced([program, "20"], "--ocaml-only")
        self.assertEqual(recorded.files(), [])
        self.assertIn(reason, recorded.errors)
        # Its native memory can be recorded all the same, but for static programs.
        recorded = self.same_as_untraced([program, "20"], "--native-interval", "1")
        self.assertIn(reason, recorded.errors)
        if "static" not in reason:
            info = recorded.info()
            self.assertEqual(info["samples"], 0)
            self.assertGreater(info["native"]["allocated"]["samples"], 20)
        doctor = run([programs.STATMEM, "doctor", "--json", program])
        self.assertEqual(doctor.returncode, 1)
        verdict = json.loads(doctor.stdout)
        self.assertEqual(verdict["recordable"], "no")
        self.assertIn(reason, verdict["reason"])
        self.assertNotEqual(verdict["advice"], "")

    def test_no_ocaml(self):
        recorded = self.same_as_untraced(["/bin/echo", "hello"], "--ocaml-only")
        self.assertIn("no OCaml", recorded.errors)
        doctor = run([programs.STATMEM, "doctor", "--json", "/bin/echo"])
        verdict = json.loads(doctor.stdout)
        self.assertEqual((doctor.returncode, verdict["recordable"], verdict["native_memory"]), (0, "partly", True))
        self.assertIn("no OCaml runtime", verdict["reason"])

    def test_doctor_says_yes(self):
        for name, program in [("native", compile("alloc")),
                              ("bytecode", compile("alloc", bytecode=True, output="alloc.byte"))]:
            done = run([programs.STATMEM, "doctor", "--json", program])
            verdict = json.loads(done.stdout)
            self.assertEqual((done.returncode, verdict["recordable"]), (0, "yes"), name)
        self.assertTrue(verdict["has_runtime"])
        verdict = json.loads(run([programs.STATMEM, "doctor", "--json", compile("alloc")]).stdout)
        compiler = run([os.path.join(programs.BIN, "ocamlopt"), "-version"]).stdout
        self.assertEqual(verdict["ocaml_version"], compiler.decode().strip(), verdict)
        self.assertTrue(verdict["debug_info"])
        verdict = json.loads(run([programs.STATMEM, "doctor", "--json",
                                  compile("alloc", debug=False, output="alloc-nog")]).stdout)
        self.assertEqual((verdict["recordable"], verdict["debug_info"]), ("partly", False))

    def test_doctor_of_a_process(self):
        process = subprocess.Popen([compile("ending"), "sleep", "20"], stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            done = run([programs.STATMEM, "doctor", "--json", str(process.pid)])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(json.loads(done.stdout)["program"].endswith("/ending"))
        finally:
            process.kill()
            process.communicate()


class Options(Case):
    def test_rate_from_one_place(self):
        """A8: the command line wins, then the variable, then the default; the header says which."""
        program = compile("alloc")
        environment = dict(os.environ, STATMEM_RATE="0.02")
        recorded = Recorded([program, "50"], rate="0.5", environment=environment)
        header = recorded.info()["header"]
        self.assertEqual(header["sample_rate"], 0.5)
        self.assertIn("command line", header["rate_origin"])
        path = os.path.join(recorded.folder, "two.stm")
        for env, rate, origin in [(environment, 0.02, "environment"), (dict(os.environ), 1e-4, "default")]:
            run([programs.STATMEM, "record", "-o", path, "--", program, "50"], env=env)
            header = recorded.info(path)["header"]
            self.assertEqual(header["sample_rate"], rate)
            self.assertIn(origin, header["rate_origin"])
        run([programs.STATMEM, "record", "-o", path, "--bytes-per-sample", "64k", "--", program, "50"])
        self.assertEqual(recorded.info(path)["header"]["sample_rate"], 8 / 65536)

    def test_default_name(self):
        folder = tempfile.mkdtemp(dir=programs.WORK)
        done = run([programs.STATMEM, "record", "--", compile("alloc"), "10"], cwd=folder)
        self.assertEqual(done.returncode, 0)
        names = os.listdir(folder)
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^alloc\.\d+\.stm$")

    def test_unwritable(self):
        """A30: known before the program is started."""
        mark = os.path.join(programs.WORK, "started")
        for place in ["/nonexistent/folder/x.stm", "/proc/x.stm", programs.WORK]:
            done = run([programs.STATMEM, "record", "-o", place, "--", "touch", mark])
            self.assertEqual(done.returncode, 1)
            self.assertEqual(len(done.stderr.decode().strip().split("\n")), 1)
            self.assertFalse(os.path.exists(mark))

    def test_not_found(self):
        self.assertEqual(run([programs.STATMEM, "record", "--", "no-such-program"]).returncode, 127)
        self.assertEqual(run([programs.STATMEM, "record", "--", "/etc/passwd"]).returncode, 126)
        self.assertEqual(run([programs.STATMEM, "record"]).returncode, 2)
        self.assertEqual(run([programs.STATMEM, "record", "-r", "2", "--", "true"]).returncode, 2)

    def test_duration(self):
        """The program goes on; what it allocates later is not recorded."""
        recorded = self.same_as_untraced([compile("ending"), "sleep", "4"], "--duration", "2s", rate="1")
        info = recorded.info()
        self.assertEqual(info["end"]["reason"], "stopped")
        self.assertAlmostEqual(info["samples"], 600000, delta=60000)  # the first half only

    def test_summary(self):
        recorded = Recorded([compile("alloc"), "300"], rate="1e-2")
        info = recorded.info()
        self.assertIn("{:,} samples".format(info["samples"]), recorded.errors)
        self.assertIn(recorded.path, recorded.errors)
        self.assertIn("statmem top", recorded.errors)
        quiet = Recorded([compile("alloc"), "300"], "--quiet")
        self.assertEqual(quiet.errors, "")
        summary = json.loads(Recorded([compile("alloc"), "300"], "--json", rate="1e-2").errors)
        self.assertEqual(summary["exit_code"], 0)
        self.assertGreater(summary["traces"][0]["samples"], 1000)
        estimate = summary["traces"][0]["allocated_bytes"]
        self.assertTrue(estimate["low"] < estimate["estimate"] < estimate["high"])

    def test_memtrace_format(self):
        recorded = Recorded([compile("alloc"), "100"], "--format", "memtrace", rate="1e-2")
        path = recorded.path[:-4] + ".ctf"
        self.assertTrue(os.path.exists(path), recorded.errors)
        converted = recorded.info(path)
        self.assertEqual(converted["samples"], recorded.info()["samples"])

    def test_uncompressed(self):
        small = Recorded([compile("alloc"), "100"], rate="0.1")
        large = Recorded([compile("alloc"), "100"], "--no-compress", rate="0.1")
        self.assertEqual(small.info()["samples"], large.info()["samples"])
        self.assertLess(os.path.getsize(small.path), 0.8 * os.path.getsize(large.path))

    def test_fifo(self):
        """A trace that is piped away: nothing waits for another reader at the end."""
        fifo, copy = (os.path.join(programs.WORK, name) for name in ("fifo", "piped.stm"))
        os.mkfifo(fifo)
        with open(copy, "wb") as f:
            reader = subprocess.Popen(["cat", fifo], stdout=f)
        done = run([programs.STATMEM, "record", "-o", fifo, "-r", "0.1", "--", compile("alloc"),
                    "100"], timeout=60)
        self.assertEqual(reader.wait(timeout=30), 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"no summary", done.stderr)
        same = Recorded([compile("alloc"), "100"], rate="0.1")
        piped = json.loads(run([programs.STATMEM, "info", "--json", copy]).stdout)
        self.assertEqual(piped["samples"], same.info()["samples"])
        self.assertEqual(piped["losses"], [])

    def test_line_end_in_a_name(self):
        done = run([programs.STATMEM, "record", "-o", "a\nb.stm", "--", compile("alloc")])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"line end", done.stderr)


if __name__ == "__main__":
    programs.main()
