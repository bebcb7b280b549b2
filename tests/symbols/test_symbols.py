#!/usr/bin/env python3
"""Names for machine code, compared with addr2line's (binutils) and c++filt's: test_symbols.py SOURCE_ROOT RESOLVE_TOOL

Programs are built on the spot, in the ways debug information can be kept. In each, every third instruction is
asked for."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.join(os.path.abspath(sys.argv[1]), "tests", "symbols")
TOOL = os.path.abspath(sys.argv[2])
ENVIRONMENT = dict(os.environ, DEBUGINFOD_URLS="")


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True, errors="replace",
                          env=ENVIRONMENT, timeout=300, **options)


def instructions(program):
    text = run("objdump", "-d", "--no-show-raw-insn", "-j", ".text", program).stdout
    found = re.findall(r"^ +([0-9a-f]+):\t", text, re.M)
    return found[::3]


def place(text):
    file, _, line = text.split(" (disc")[0].rpartition(":")
    line = "0" if line == "?" else line
    return (os.path.basename(file), line) if line != "0" else ("", "0")


def ours(program, offsets, *options):
    done = run(TOOL, *options, program, input="\n".join(offsets) + "\n")
    answers, frames = {}, None
    for line in done.stdout.splitlines():
        if "\t" not in line:
            frames = answers.setdefault(int(line, 16), [])
        else:
            function, where = line.split("\t")
            frames.append((function,) + place(where))
    return answers, done.stderr


def theirs(program, offsets):
    text = run("addr2line", "-afiC", "-e", program, input="\n".join(offsets) + "\n").stdout.splitlines()
    answers, frames, i = {}, None, 0
    while i < len(text):
        if re.fullmatch("0x[0-9a-f]{16}", text[i]):
            frames = answers.setdefault(int(text[i], 16), [])
            i += 1
        else:
            frames.append((text[i],) + place(text[i + 1]))
            i += 2
    return answers


def cargo_rustc():
    return shutil.which("rustc") or next(
        (p for p in [os.path.expanduser("~/.cargo/bin/rustc")] if os.path.exists(p)), None)


class Symbols(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def build(self, compiler, source, *flags, name="program"):
        run(*compiler.split(), os.path.join(HERE, source), *flags, "-o", self.path(name), cwd=self.folder)
        return self.path(name)

    def compare(self, program, offsets=None, against=None, options=(), least=0.9, view=list, unlike=200):
        """At least this part has a place in the source; where both have one, every frame is the same."""
        offsets = offsets or instructions(program)
        mine, _ = ours(program, offsets, *options)
        other = theirs(against or program, offsets)
        known = [a for a in mine if mine[a] and mine[a][0][2] != "0"]
        expected = [a for a in other if other[a] and other[a][0][2] != "0"]
        self.assertGreater(len(known), least * len(expected))
        self.assertGreater(len(expected), 20)
        different = [a for a in known if view(mine[a]) != view(other[a]) and other[a][0][2] != "0"]
        for a in different[:3]:
            print(hex(a), mine[a], other[a])
        self.assertLessEqual(len(different), len(known) // unlike, f"of {len(known)}")
        return mine

    def need(self, command):
        if shutil.which(command) is None:
            self.skipTest(f"no {command}")

    def test_c(self):
        for flags in (["-O2", "-g"], ["-O0", "-g", "-gdwarf-4"], ["-O3", "-g", "-no-pie"]):
            mine = self.compare(self.build("gcc", "inlines.c", *flags))
            if "-O0" not in flags:
                chains = {tuple(f[0] for f in frames) for frames in mine.values()}
                self.assertIn(("innermost", "middle", "outer"), chains)

    def test_clang(self):
        self.need("clang")
        self.compare(self.build("clang", "inlines.c", "-O2", "-g", "-gdwarf-5"))
        self.compare(self.build("clang", "inlines.c", "-O2", "-g", "-gdwarf-4"))

    def test_cpp(self):
        self.need("g++")
        # addr2line gives an inlined call without linkage name (of a local type) its caller's name, and sometimes the unit's
        # file: lines and the outermost function are compared.
        mine = self.compare(self.build("g++", "templates.cpp", "-O2", "-g"),
                            unlike=50, view=lambda frames: [f[2] for f in frames] + [frames[-1][0]])
        names = {f[0] for frames in mine.values() for f in frames}
        self.assertTrue(any("shop::Shelf<shop::Item, 3>::put(" in n for n in names), names)
        self.assertFalse([n for n in names if n.startswith("_Z")])

    def test_split_units(self):
        program = self.build("gcc", "inlines.c", "-O2", "-g", "-gsplit-dwarf", "-gdwarf-5")
        plain = self.build("gcc", "inlines.c", "-O2", "-g", "-gdwarf-5", name="plain")
        self.compare(program, against=plain)

    def test_debug_link(self):
        program = self.build("gcc", "inlines.c", "-O2", "-g", "-Wl,--build-id=none")
        whole = self.path("whole")
        shutil.copy(program, whole)
        os.mkdir(self.path(".debug"))
        run("objcopy", "--only-keep-debug", program, self.path(".debug/program.debug"))
        run("strip", program)
        run("objcopy", "--add-gnu-debuglink=.debug/program.debug", program, cwd=self.folder)
        self.compare(program, instructions(whole), against=whole)
        # A debug file that changed since is not used: the link has its checksum.
        with open(self.path(".debug/program.debug"), "ab") as file:
            file.write(b"changed")
        mine, _ = ours(program, instructions(whole))
        self.assertFalse([f for frames in mine.values() for f in frames if f[2] != "0"])

    def test_build_id_directory(self):
        program = self.build("gcc", "inlines.c", "-O2", "-g", "-Wl,--build-id=sha1")
        whole = self.path("whole")
        shutil.copy(program, whole)
        build_id = re.search("Build ID: ([0-9a-f]+)", run("readelf", "-n", program).stdout)[1]
        directory = self.path(f"debug/.build-id/{build_id[:2]}")
        os.makedirs(directory)
        run("objcopy", "--only-keep-debug", program, f"{directory}/{build_id[2:]}.debug")
        run("strip", program)
        self.compare(program, instructions(whole), against=whole,
                     options=["-d", self.path("debug"), "-b", build_id])
        # The program itself is gone: its debug file suffices.
        offsets = instructions(whole)
        os.remove(program)
        mine, _ = ours(program, offsets, "-d", self.path("debug"), "-b", build_id)
        self.assertGreater(len([a for a in mine if mine[a] and mine[a][0][2] != "0"]), 20)
        mine, said = ours(program, offsets, "-b", build_id)
        self.assertFalse(any(mine.values()))
        self.assertIn("No such file", said)

    def test_another_build(self):
        program = self.build("gcc", "inlines.c", "-O2", "-g", "-Wl,--build-id=sha1")
        mine, said = ours(program, instructions(program), "-b", "00" * 20)
        self.assertFalse(any(mine.values()))
        self.assertIn("another build", said)

    def test_symbol_table(self):
        program = self.build("gcc", "inlines.c", "-O1")
        offsets = instructions(program)
        mine, said = ours(program, offsets)
        names = {f[0] for frames in mine.values() for f in frames}
        self.assertLessEqual({"main", "outer", "fails", "checked"}, names)
        self.assertFalse([f for frames in mine.values() for f in frames if f[2] != "0"])
        self.assertIn("no debug information", said)
        # Stripped: no name at all, and not that of an exported neighbour.
        program = self.build("gcc", "inlines.c", "-O1", "-s", "-rdynamic", "-fvisibility=hidden", name="stripped")
        mine, _ = ours(program, offsets)
        self.assertLessEqual({f[0] for frames in mine.values() for f in frames}, {"main", "_start"})

    def test_not_objects(self):
        with open("/proc/self/exe", "rb") as file:
            beginning = file.read(3000)
        for name, content in {"empty": b"", "text": b"hello", "cut": beginning}.items():
            with open(self.path(name), "wb") as file:
                file.write(content)
            mine, said = ours(self.path(name), ["1000"])
            self.assertFalse(any(mine.values()))
            self.assertNotEqual(said.strip().split("s. ")[-1], "")
        mine, said = ours(self.folder, ["1000"])
        self.assertIn("not a file", said)

    def test_damaged(self):
        program = self.build("gcc", "inlines.c", "-O2", "-g")
        with open(program, "rb") as file:
            data = file.read()
        offsets = instructions(program)
        state = 7
        for _ in range(60):
            copy = bytearray(data)
            for _ in range(40):
                state = state * 1103515245 + 12345 & 0x7FFFFFFF
                copy[state % len(copy)] = state >> 16 & 255
            with open(self.path("damaged"), "wb") as file:
                file.write(copy)
            ours(self.path("damaged"), offsets)  # check=True: no crash

    def test_rust(self):
        rustc = cargo_rustc()
        if rustc is None:
            self.skipTest("no rustc")
        program = self.path("crates")
        run(rustc, "-g", "-O", "-C", "symbol-mangling-version=v0", "-C", "debuginfo=2", os.path.join(HERE, "crates.rs"),
            "-o", program, cwd=self.folder)
        text = run("nm", "--defined-only", program).stdout
        symbols = [line.split(" ", 2)[2] for line in text.splitlines() if " t " in line or " T " in line]
        symbols = sorted({s for s in symbols if s.startswith("_R")})
        self.assertGreater(len(symbols), 300)
        mine = self.demangled(symbols)
        # c++filt shows the crates' disambiguators, as in core[c1f1a4ba060b9bfa], and the types of constants.
        other = run("c++filt", input="\n".join(symbols) + "\n").stdout
        other = re.sub(r"\[[0-9a-f]{8,16}\](?=::|>|,| |$)", "", other, flags=re.M)
        other = re.sub(r"(?<=[0-9e']): (?:[ui](?:8|16|32|64|128|size)|bool|char)\b", "", other).splitlines()
        different = [(s, a, b) for s, a, b in zip(symbols, mine, other) if a != b]
        for line in different[:3]:
            print(*line, sep="\n  ")
        self.assertEqual(len(different), 0, f"of {len(symbols)}")
        answers, _ = ours(program, instructions(program)[::5])
        chains = {tuple(f[0] for f in frames) for frames in answers.values()}
        self.assertTrue(any(c[-1].startswith("crates::") and len(c) > 1 for c in chains))
        self.assertTrue(any(c[-1] == "crates::main" and c[0] != c[-1] for c in chains))

    def demangled(self, symbols):
        return run(TOOL, "-M", input="\n".join(symbols) + "\n").stdout.splitlines()

    def test_names(self):
        table = {
            # Rust's older scheme
            "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE": "core::fmt::Formatter::pad",
            "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h0123456789abcdefE":
                "<Test + 'static as foo::Bar<Test>>::bar",
            "_ZN3foo17h05af221e174051e9E.llvm.1234": "foo",
            # its newer one, with back references, letters beyond ASCII, bound lifetimes, constants
            "_RNvCs1234_7mycrate3foo": "mycrate::foo",
            "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y":
                "utf8_idents::საჭმელად_გემრიელი_"
                "სადილი",
            "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_": "cc::spawn::{closure#0}::{closure#0}",
            "_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std":
                "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>",
            "_RINvC1a1fDG_INtB2_1TL0_EEL_E": "a::f::<dyn for<'a> a::T<'a>>",
            "_RINvC1a1fFUKCsEuE": "a::f::<unsafe extern \"C\" fn(i16)>",
            "_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKanb_E": "<const_generic::Signed<-11>>",
            # OCaml
            "camlStdlib__List__map_123": "Stdlib__List.map", "camlStdlib__List.map_123": "Stdlib__List.map",
            # C++
            "_ZNSt6vectorIiSaIiEE9push_backEOi": "std::vector<int, std::allocator<int> >::push_back(int&&)",
            # none of these, or damaged
            "main": "main", "_Z": "_Z", "_R": "_R", "_RNvC": "_RNvC", "_RB_": "_RB_", "_RNvB_3foo": "_RNvB_3foo", "_ZN3foo": "_ZN3foo",
            "_RC99999999999foo": "_RC99999999999foo", "": "",
        }
        if shutil.which("g++") is None:
            del table["_ZNSt6vectorIiSaIiEE9push_backEOi"]
        for symbol, mine in zip(table, self.demangled(list(table))):
            self.assertEqual(mine, table[symbol], symbol)
        # Back references that double at each level, and depth: an end is found.
        bomb = "_RINvC1a1fT" + "TB7_B7_E" * 40 + "EE"
        self.demangled([bomb, "_RINvC1a1f" + "R" * 5000 + "uE", "_RNvC1a" + "9" * 3000])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
