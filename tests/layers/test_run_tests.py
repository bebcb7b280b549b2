#!/usr/bin/env python3
"""Tests tools/run-tests and tools/lint's banned check on made-up projects: they must count, and must be able to fail."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(folder, *command):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False)


class RunTests(unittest.TestCase):
    def run_project(self, tests):
        """tests: {name: exit status}"""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "meson.build"), "w", encoding="utf-8") as text:
                text.write("project('p')\nsh = find_program('sh')\n")
                for name, status in tests.items():
                    text.write(f"test('{name}', sh, args: ['-c', 'exit {status}'])\n")
            build = os.path.join(folder, "b")
            self.assertEqual(run(folder, "meson", "setup", build).returncode, 0)
            done = run(folder, sys.executable, os.path.join(ROOT, "tools/run-tests"), "--sanitized", build)
            return done.returncode, done.stdout.splitlines()[-1]

    def test_all_pass(self):
        self.assertEqual(self.run_project({"a": 0, "b": 0}), (0, "2 passed, 0 failed"))

    def test_failure_and_skip_are_counted(self):
        self.assertEqual(self.run_project({"a": 0, "b": 1, "c": 77, "d": 3}), (1, "1 passed, 2 failed, 1 skipped"))

    def test_no_test_is_a_failure(self):
        self.assertEqual(self.run_project({})[0], 1)


class Banned(unittest.TestCase):
    def run_tree(self, text):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("src/base", "src/util"):
                os.makedirs(os.path.join(folder, name))
            with open(os.path.join(folder, "ARCHITECTURE.md"), "w", encoding="utf-8") as file:
                file.write("| src/base | hook-safe | | |\n| src/util | hosted | base | |\n")
            for name in ("src/base/x.c", "src/util/x.c"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            return run(folder, sys.executable, os.path.join(ROOT, "tools/banned"), folder)

    def test_malloc_is_banned_in_hook_safe_code_only(self):
        done = self.run_tree("void *f(void) { return malloc (3); }\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/base/x.c:1: malloc", done.stdout)
        self.assertNotIn("src/util", done.stdout)

    def test_sprintf_is_banned_everywhere(self):
        self.assertEqual(self.run_tree('int f(char *p) {\n return sprintf(p, "x"); }\n').stdout.count("x.c:2: sprintf"), 2)

    def test_words_in_comments_and_strings_and_longer_names(self):
        done = self.run_tree('/* malloc(3)\n free(p) */ // abort()\nchar *s = "printf(\\"x\\")"; int my_free(int); int free_it(int);\n')
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_reasoned_exception(self):
        self.assertEqual(self.run_tree("void f(void) { exit(1); } /* banned: nothing else is possible */\n").returncode, 0)


if __name__ == "__main__":
    if shutil.which("meson") is None:
        sys.exit(77)
    unittest.main()
