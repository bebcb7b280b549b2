#!/usr/bin/env python3
"""Closing recorded traces: clean end, SIGKILL, torn and foreign bytes, a writer that still runs, a full disk.

usage: test_finalise.py STATMEM RECORDING FINALISE_TOOL DECODER CONTENT
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

STATMEM, RECORDING, TOOL, DECODER, CONTENT = sys.argv[1:6]


def dump(path):
    """Every event and name, as numbers."""
    r = subprocess.run([CONTENT, path], capture_output=True, text=True, check=True)
    return json.loads(r.stdout)


def info(path):
    r = subprocess.run([STATMEM, "info", "--json", path], capture_output=True, text=True, check=True)
    return json.loads(r.stdout)


def n_events(path):
    e = info(path)["events"]
    return sum(e[k] for k in e if k.startswith("alloc")) + e["promote"] + e["collect"]


def finalise(path, *options):
    r = subprocess.run([TOOL, path, *options], capture_output=True, text=True)
    return r.returncode, json.loads(r.stdout) if r.returncode == 0 else r.stdout


class Finalise(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="statmem-finalise-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.trace = os.path.join(self.dir, "t.stm")

    def record(self, threads=2, events=20000):
        r = subprocess.run([RECORDING, self.trace, str(threads), str(events)],
                           capture_output=True, text=True, check=True)
        return int(r.stdout)

    def record_and_hold(self, threads=3, events=20000):
        p = subprocess.Popen([RECORDING, self.trace, str(threads), str(events), "hold"],
                             stdout=subprocess.PIPE, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(lambda: (p.kill(), p.wait()))
        return p, int(p.stdout.readline())

    def killed(self, **how):
        p, n = self.record_and_hold(**how)
        p.send_signal(signal.SIGKILL)
        p.wait()
        return n

    def decodes_with_index(self):
        """The independent decoder checks every checksum and that INDEX names every packet."""
        r = subprocess.run([sys.executable, DECODER, "--summary", self.trace],
                           capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_clean_end_is_compressed_and_keeps_every_event(self):
        n = self.record()
        before, size = dump(self.trace), os.path.getsize(self.trace)
        code, r = finalise(self.trace, "compress")
        self.assertEqual(code, 0)
        self.assertEqual((r["recovered"], r["torn"]), (0, 0))
        self.assertEqual(r["before"], size)
        self.assertEqual(r["after"], os.path.getsize(self.trace))
        self.assertLess(r["after"], size * 0.8)
        self.assertEqual(dump(self.trace), before)
        self.assertEqual(n_events(self.trace), n)
        self.decodes_with_index()
        # Once more changes nothing but the time it takes.
        code, again = finalise(self.trace, "compress")
        self.assertEqual((code, again["after"]), (0, r["after"]))
        self.assertEqual(os.listdir(self.dir), ["t.stm"])

    def test_killed_program_loses_nothing(self):
        n = self.killed()
        self.assertEqual(sorted(os.listdir(self.dir)), ["t.stm", "t.stm.tail"])
        before = dump(self.trace)
        self.assertEqual(n_events(self.trace), n)
        code, r = finalise(self.trace, "compress")
        self.assertEqual(code, 0)
        self.assertGreater(r["recovered"], 0)
        self.assertEqual(r["torn"], 0)
        self.assertEqual(os.listdir(self.dir), ["t.stm"])
        self.assertEqual(dump(self.trace), before)
        self.assertEqual(n_events(self.trace), n)
        closed = info(self.trace)
        self.assertEqual(closed["losses"], [])
        self.decodes_with_index()

    def test_torn_bytes_are_dropped_and_counted(self):
        n = self.killed()
        with open(self.trace, "ab") as f:
            f.write(b"\x8bSTM1\r\x1a\n" + b"torn" * 200)
        code, r = finalise(self.trace)
        self.assertEqual((code, r["torn"]), (0, 808))
        self.assertEqual(n_events(self.trace), n)
        self.decodes_with_index()

    def test_a_packet_cut_without_side_file_is_left_to_readers(self):
        self.record(threads=1, events=60000)
        with open(self.trace, "r+b") as f:
            f.truncate(os.path.getsize(self.trace) // 2)
        before, size = dump(self.trace), os.path.getsize(self.trace)
        code, r = finalise(self.trace, "compress")
        self.assertEqual((code, r["left_alone"]), (0, True))
        self.assertEqual(os.path.getsize(self.trace), size)
        self.assertEqual(dump(self.trace), before)

    def test_two_recordings_in_one_file_are_left_alone(self):
        self.record(events=500)
        with open(self.trace, "rb") as f:
            first = f.read()
        self.record(events=700)
        with open(self.trace, "ab") as f:
            f.write(first)
        code, r = finalise(self.trace)
        self.assertEqual((code, r["left_alone"]), (0, True))
        self.assertIn("several", r["why"])

    def packets(self):
        """(offset, stored bytes, kind, events) of each packet."""
        with open(self.trace, "rb") as f:
            data = f.read()
        at, found = 0, []
        while at < len(data):
            stored, = struct.unpack_from("<I", data, at + 16)
            events, = struct.unpack_from("<I", data, at + 64)
            found.append((at, stored, data[at + 25], events))
            at += 96 + stored
        return data, found

    def lost(self, path):
        return sum(l["events"] for l in info(path)["losses"] if l["kind"] in ("corrupt", "names"))

    def test_damage_stays_known_after_closing_and_converting(self):
        """Whichever packet is hit: what it held is reported as lost before and after."""
        self.record(threads=2, events=30000)
        whole, packets = self.packets()
        hit = 0
        for at, stored, kind, events in packets:
            if kind not in (1, 2):
                continue
            with self.subTest(offset=at, kind=kind):
                broken = bytearray(whole)
                broken[at + 96 + stored // 2] ^= 0xff
                with open(self.trace, "wb") as f:
                    f.write(broken)
                subprocess.run([STATMEM, "convert", "-f", self.trace, self.trace + ".2.stm"],
                               check=True, capture_output=True)
                code, r = finalise(self.trace, "compress")
                self.assertEqual((code, r["torn"]), (0, 96 + stored))
                for path in self.trace, self.trace + ".2.stm":
                    self.assertGreaterEqual(self.lost(path), events, path)
                strict = subprocess.run([STATMEM, "info", "--strict", self.trace],
                                        capture_output=True)
                self.assertEqual(strict.returncode, 1)
                hit += 1
        self.assertGreater(hit, 4)

    def test_a_link_keeps_pointing(self):
        self.record(events=500)
        real = os.path.join(self.dir, "real.stm")
        os.rename(self.trace, real)
        os.symlink("real.stm", self.trace)
        before = dump(real)
        code, r = finalise(self.trace, "compress")
        self.assertEqual((code, r["left_alone"]), (0, False))
        self.assertTrue(os.path.islink(self.trace))
        self.assertEqual(dump(real), before)

    def test_a_running_writer_is_refused(self):
        p, n = self.record_and_hold()
        code, text = finalise(self.trace)
        self.assertEqual(code, 1)
        self.assertIn(str(p.pid), text)
        self.assertTrue(os.path.exists(self.trace + ".tail"))
        self.assertEqual(n_events(self.trace), n)

    def test_a_full_disk_leaves_the_trace_as_it_was(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small disk")
        small = os.path.join(self.dir, "small")
        os.mkdir(small)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", small],
                               capture_output=True)
        if mount.returncode != 0:
            self.skipTest("cannot mount")
        self.addCleanup(subprocess.run, ["umount", "-l", small])
        self.trace = os.path.join(small, "t.stm")
        n = self.killed(threads=2, events=60000)
        free = os.statvfs(small)
        with open(os.path.join(small, "filler"), "wb") as f:
            f.write(bytes(max(0, free.f_bavail * free.f_bsize - 65536)))
        before = dump(self.trace)
        code, text = finalise(self.trace)
        self.assertEqual(code, 1)
        self.assertIn("No space left", text)
        self.assertEqual(sorted(os.listdir(small)), ["filler", "t.stm", "t.stm.tail"])
        self.assertEqual(dump(self.trace), before)
        self.assertEqual(n_events(self.trace), n)

    def test_other_files_are_left_alone(self):
        self.record(events=100)
        other = os.path.join(self.dir, "other.ctf")
        subprocess.run([STATMEM, "convert", self.trace, other], check=True, capture_output=True)
        with open(other, "rb") as f:
            before = f.read()
        code, r = finalise(other)
        self.assertEqual((code, r["left_alone"]), (0, True))
        with open(other, "rb") as f:
            self.assertEqual(f.read(), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
