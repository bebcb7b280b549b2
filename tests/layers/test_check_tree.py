#!/usr/bin/env python3
"""Tests check_tree.py on small made-up trees: the good one passes, and each violation is found."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_tree  # noqa: E402

TABLE = """# Architecture
| folder | world | may include | what |
|---|---|---|---|
| src/base | hook-safe | | bytes |
| src/record | hook-safe | base | streams |
| src/util | hosted | base | errors |
| src/cli | hosted | base util | commands |
"""
GOOD = {
    "ARCHITECTURE.md": TABLE,
    "src/base/bytes.h": "#include <stdint.h>\n",
    "src/record/slot.c": '#include "base/bytes.h"\n#include "record/slot.h"\n#include <errno.h>\n',
    "src/record/slot.h": '#include "statmem.h"\n',
    "src/util/error.h": '#include "base/bytes.h"\n#include <stdio.h>\n',
    "src/cli/main.c": '#include "util/error.h"\n#include "base/bytes.h"\n',
}


class CheckTree(unittest.TestCase):
    def found(self, **changes):
        files = dict(GOOD, **{name.replace("__", "/").replace("_DOT_", "."): text
                              for name, text in changes.items()})
        return self.found_in(files)

    def found_in(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = os.path.join(root, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            return list(check_tree.violations(root))

    def one(self, needle, **changes):
        found = self.found(**changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(needle, found[0])

    def test_good_tree(self):
        self.assertEqual(self.found(), [])

    def test_include_of_a_folder_that_the_row_does_not_name(self):
        self.one('src/record/bad.c:2: src/record may not include "util/error.h"',
                 src__record__bad_DOT_c='\n#include "util/error.h"\n')

    def test_include_upwards(self):
        self.one("src/util may not include", src__util__x_DOT_c='  #  include "cli/main.h"\n')

    def test_include_without_folder(self):
        self.one("write the folder", src__base__x_DOT_c='#include "bytes.h"\n')

    def test_unsafe_header_in_hook_safe_code(self):
        self.one("<stdio.h> in hook-safe code", src__record__x_DOT_c="#include <stdio.h>\n")

    def test_hook_safe_row_names_hosted_folder(self):
        self.one("is hook-safe and names util, which is not", ARCHITECTURE_DOT_md=TABLE.replace(
            "| src/cli | hosted | base util |", "| src/cli | hook-safe | base util |"))

    def test_row_names_a_lower_row(self):
        self.one("stands below it", ARCHITECTURE_DOT_md=TABLE.replace(
            "| src/util | hosted | base |", "| src/util | hosted | base cli |"))

    def test_folder_without_row(self):
        self.one("src/extra: no row", src__extra__x_DOT_c="")

    def test_row_without_folder(self):
        self.one("row src/gone has no folder", ARCHITECTURE_DOT_md=TABLE + "| src/gone | hosted | base | |\n")

    def test_no_table(self):
        self.assertTrue(any("no layer table" in line for line in self.found(ARCHITECTURE_DOT_md="# nothing\n")))

    def test_long_file(self):
        self.one("701 lines", src__base__long_DOT_c="int x;\n" * 701)
        self.assertEqual(self.found(src__base__long_DOT_c="int x;\n" * 700), [])

    def test_environment_variables(self):
        use = 'char *a = getenv("STATMEM_X"), *b = "MEMTRACE=";\n#ifndef STATMEM_Y\n'
        found = self.found(src__util__x_DOT_c=use)
        self.assertEqual([line.split(": ")[1].split()[0] for line in found], ["MEMTRACE", "STATMEM_X"])
        table = "| `STATMEM_X` | | |\n| `MEMTRACE` | | |\n"
        self.assertEqual(self.found(src__util__x_DOT_c=use, docs__environment_DOT_md=table), [])

    def test_paths_of_one_machine(self):
        for folder in ("home", "root", "work"):
            self.one("a path of one machine", docs__x_DOT_md=f"see /{folder}/someone/notes\n")
        self.assertEqual(self.found(docs__x_DOT_md="see ~/root/x, $HOME/work/y, /usr/share/home/z\n"), [])


if __name__ == "__main__":
    unittest.main()
