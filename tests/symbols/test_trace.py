#!/usr/bin/env python3
"""Names of machine code in traces, from the recording on: test_trace.py SOURCE_ROOT BUILD_ROOT"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
HERE = os.path.join(SOURCE, "tests", "symbols")
STATMEM = os.path.join(BUILD, "statmem")
LIBRARY = os.path.join(BUILD, "src", "capi")
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=LIBRARY, DEBUGINFOD_URLS="")


def run(*command, code=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
                          env=options.pop("env", ENVIRONMENT), **options)
    if done.returncode != code:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def line_of(source, mark):
    with open(os.path.join(HERE, source), encoding="utf-8") as text:
        return next(n for n, line in enumerate(text, 1) if f"/* {mark} */" in line)


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, *flags):
        common = ["gcc", "-O2", "-Wl,--build-id=sha1", "-I", os.path.join(SOURCE, "include"), *flags]
        run(*common, os.path.join(HERE, "linked.c"), "-o", self.path("linked"), "-L", LIBRARY, "-lstatmem", "-ldl")
        for name in ("first", "second"):
            run(*common, "-shared", "-fPIC", f"-DNAME={name}_place", os.path.join(HERE, "reporting_plugin.c"), "-o",
                self.path(name + ".so"), "-L", LIBRARY, "-lstatmem")

    def record(self, *plugins):
        run(self.path("linked"), self.path("t.stm"), *[self.path(p) for p in plugins or ["first.so"]])

    def locations(self):
        """[[(function, file, line, flags)]], from the second decoder."""
        out = run(sys.executable, os.path.join(SOURCE, "tests", "format", "decode_trace.py"), self.path("t.stm"))
        found = []
        for line in out.stdout.splitlines():
            if line.startswith("S "):
                parts = [p.split("|") for p in line.split(" ")[2:]]
                found.append([(p[1], os.path.basename(p[0]), int(p[2]), int(p[6])) for p in parts])
        return found

    def shown(self):
        """Innermost functions as statmem shows them."""
        out = run(STATMEM, "dump", "--json", self.path("t.stm")).stdout
        return out

    def symbolize(self, *options, **how):
        return json.loads(run(STATMEM, "symbolize", "--json", "--no-compress", *options, self.path("t.stm"), **how).stdout)

    def agree(self):
        """Both decoders say the same of the trace."""
        tool = os.path.join(BUILD, "tests", "format", "dump_canonical")
        if os.path.exists(tool):
            mine = run(tool, self.path("t.stm")).stdout.splitlines()
            other = run(sys.executable, os.path.join(SOURCE, "tests", "format", "decode_trace.py"),
                        self.path("t.stm")).stdout.splitlines()
            self.assertEqual([line for line in mine if line.startswith("S ")],
                             [line for line in other if line.startswith("S ")])

    def test_debug_information(self):
        self.compile("-g")
        self.record()
        before = self.locations()
        self.assertTrue(before and all(len(frames) == 1 and frames[0][3] & 16 for frames in before))
        self.agree()
        # Names of functions are known from the symbol table of the running program already.
        self.assertIn('"in_caller"', self.shown())
        result = self.symbolize("--strict")
        self.assertEqual((result["codes"], result["named"]), (len(before), len(before)))
        self.assertEqual({o["source"] for o in result["objects"]}, {"debug information"})
        after = self.locations()
        self.assertIn([("in_caller", "linked.c", line_of("linked.c", "CALLER"), 12),
                       ("in_inlined", "linked.c", line_of("linked.c", "INLINED"), 12)], after)
        self.assertIn([("in_static", "linked.c", line_of("linked.c", "STATIC"), 12)], after)
        self.assertIn([("first_place", "reporting_plugin.c", line_of("reporting_plugin.c", "PLUGIN"), 12)], after)
        self.assertEqual(len(after), len(before))
        self.agree()
        out = run(STATMEM, "info", "--strict", self.path("t.stm"))  # no loss is reported for what is named twice
        self.assertEqual(out.stderr, "")
        self.assertIn("in_inlined", self.shown())
        # Once more: nothing is left to do, and nothing changes.
        self.assertEqual(self.symbolize()["codes"], 0)
        self.assertEqual(self.locations(), after)

    def test_convert_keeps_offsets(self):
        self.compile("-g")
        self.record()
        run(STATMEM, "convert", "--no-compress", self.path("t.stm"), self.path("u.stm"))
        os.rename(self.path("u.stm"), self.path("t.stm"))
        self.assertTrue(all(frames[0][3] & 16 for frames in self.locations()))
        self.assertGreaterEqual(self.symbolize("--strict")["named"], 5)
        run(STATMEM, "convert", "--no-compress", self.path("t.stm"), self.path("u.stm"))
        self.assertIn("in_inlined", run(STATMEM, "dump", "--json", self.path("u.stm")).stdout)

    def test_plugins_at_one_place(self):
        self.compile("-g")
        self.record("first.so", "second.so", "first.so")
        self.symbolize("--strict")
        names = {frames[-1][0] for frames in self.locations()}
        self.assertLessEqual({"first_place", "second_place"}, names)

    def test_stripped(self):
        self.compile("-s")
        self.record()
        result = self.symbolize()
        program = next(o for o in result["objects"] if o["path"].endswith("/linked"))
        self.assertEqual((program["named"], program["source"]), (0, "none"))
        self.assertIn("no debug information", program["why"])
        self.assertRegex(self.shown(), r'"linked\+0x[0-9a-f]+"')
        run(STATMEM, "symbolize", "--strict", self.path("t.stm"), code=1)

    def test_another_build(self):
        self.compile("-g")
        self.record()
        os.rename(self.path("first.so"), self.path("kept"))
        shutil.copy(self.path("second.so"), self.path("first.so"))
        plugin = next(o for o in self.symbolize()["objects"] if o["path"].endswith("first.so"))
        self.assertEqual(plugin["named"], 0)
        self.assertIn("another build", plugin["why"])
        # Later, with a directory of debug files.
        directory = self.path(f"debug/.build-id/{plugin['build_id'][:2]}")
        os.makedirs(directory)
        os.rename(self.path("kept"), f"{directory}/{plugin['build_id'][2:]}.debug")
        result = self.symbolize("--strict", "--debug-dirs", self.path("debug"))
        self.assertEqual((result["codes"], result["named"]), (plugin["codes"],) * 2)

    def test_text_and_errors(self):
        self.compile("-g")
        self.record()
        text = run(STATMEM, "symbolize", self.path("t.stm")).stdout
        self.assertRegex(text, r"(\d+) of \1 places in machine code named\n +(\d+) of \2 .*/linked \(debug information\)\n")
        self.assertIn("has a name already", run(STATMEM, "symbolize", self.path("t.stm")).stdout)
        self.assertIn("No such file", run(STATMEM, "symbolize", self.path("none.stm"), code=1).stderr)
        self.assertIn("standard input", run(STATMEM, "symbolize", "-", code=1).stderr)
        run(STATMEM, "symbolize", "--debuginfod-timeout", "0", self.path("t.stm"), code=2)

    def test_debuginfod_only_when_asked(self):
        # A server that answers nothing: without the option it must not even be asked, with it the wait has an end.
        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen(50)
        self.addCleanup(server.close)
        server.settimeout(0.2)
        environment = dict(ENVIRONMENT, DEBUGINFOD_URLS=f"http://127.0.0.1:{server.getsockname()[1]}",
                           DEBUGINFOD_CACHE_PATH=self.path("cache"))
        self.compile("-s")
        self.record()
        self.symbolize(env=environment)
        with self.assertRaises(socket.timeout):
            server.accept()
        begin = time.monotonic()
        self.symbolize("--debuginfod", "--debuginfod-timeout", "1", env=environment)
        self.assertLess(time.monotonic() - begin, 20)
        try:
            server.accept()[0].close()
        except socket.timeout:
            print("this elfutils has no debuginfod client")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
