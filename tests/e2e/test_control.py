#!/usr/bin/env python3
"""`statmem ctl` and a program that runs: windows, marks, and who may ask."""
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs
from programs import compile, run


class Running:
    """`statmem record` of windows.ml, which is told line by line what to do."""

    def __init__(self, *options, environment=None):
        self.folder = tempfile.mkdtemp(dir=programs.WORK)
        self.runtime = tempfile.mkdtemp(dir=programs.WORK)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.runtime, **(environment or {})}
        self.path = os.path.join(self.folder, "w.stm")
        self.process = subprocess.Popen([programs.STATMEM, "record", "-r", "1", "-o", self.path, *options, "--",
                                         compile("windows")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=self.environment)
        self.do("start")
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(children, encoding="ascii") as file:
            self.pid = int(file.read().split()[0])

    def do(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().strip()
        assert answer == line, answer

    def ctl(self, *arguments):
        return run([programs.STATMEM, "ctl", str(self.pid), *arguments], env=self.environment)

    def end(self):
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output.decode(), errors.decode()

    def socket(self):
        return os.path.join(self.runtime, "statmem", f"{self.pid}.ctl")


def events(path):
    done = run([programs.STATMEM, "dump", "--json", path])
    return [json.loads(line) for line in done.stdout.splitlines()]


def blocks(path):
    """Sampled blocks of OCaml by the function that made them."""
    found = {}
    for e in events(path):
        if e["event"] == "alloc" and e["heap"] != "native" and e["stack"]:
            name = e["stack"][0]["function"]
            found[name] = found.get(name, 0) + 1
    return found


class Control(unittest.TestCase):
    def told(self, done, text, code=0):
        self.assertEqual(done.returncode, code, done)
        self.assertIn(text, (done.stdout if code == 0 else done.stderr).decode())

    def test_windows(self):
        """Each window has what was allocated in it, all of it, and nothing else."""
        r = Running()
        r.do("alpha")
        self.told(r.ctl("status"), "recording into " + r.path)
        self.told(r.ctl("start"), "it is recording already", 1)
        self.told(r.ctl("mark", "before the stop"), "marked")
        self.told(r.ctl("stop"), "stopped; the trace is " + r.path)
        r.do("beta")
        self.told(r.ctl("status"), "not recording")
        self.told(r.ctl("stop"), "it is not recording", 1)
        self.told(r.ctl("mark", "lost"), "nothing is being recorded", 1)
        self.told(r.ctl("start"), f"recording into {r.path}.2")
        r.do("gamma")
        self.told(r.ctl("mark", "in the second"), "marked")
        self.told(r.ctl("stop"), f"{r.path}.2")
        self.told(r.ctl("start"), f"recording into {r.path}.3")
        r.do("alpha")
        code, output, errors = r.end()
        self.assertEqual((code, output), (0, "2000\n"), errors)
        self.assertFalse(os.path.exists(r.socket()))
        self.assertEqual(sorted(os.listdir(r.folder)), ["w.stm", "w.stm.2", "w.stm.3"])
        expected = [("w.stm", "Windows.alpha", "stopped"), ("w.stm.2", "Windows.gamma", "stopped"),
                    ("w.stm.3", "Windows.alpha", "program exit")]
        for name, function, reason in expected:
            path = os.path.join(r.folder, name)
            info = json.loads(run([programs.STATMEM, "info", "--json", path]).stdout)
            self.assertEqual(info["losses"], [], name)
            self.assertEqual(info["end"]["reason"], reason, name)
            found = blocks(path)
            # Every block is a sample at rate 1; the first window began before the program's first line.
            self.assertEqual(found.get(function), 10_000, (name, found))
            self.assertEqual([f for f in ("Windows.alpha", "Windows.beta", "Windows.gamma") if f in found and f != function
                              and not (name == "w.stm" and f == "Windows.gamma")], [], name)
        marks = [[e["text"] for e in events(os.path.join(r.folder, name)) if e["event"] == "mark"]
                 for name in ("w.stm", "w.stm.2", "w.stm.3")]
        self.assertEqual(marks, [["before the stop"], ["in the second"], []])

    def test_many_windows(self):
        r = Running("--no-symbolize")
        for i in range(20):
            self.told(r.ctl("stop"), "stopped")
            self.told(r.ctl("start"), f"w.stm.{i + 2}")
        r.do("gamma")
        self.assertEqual(r.end()[0], 0)
        self.assertEqual(len(os.listdir(r.folder)), 21)
        self.assertEqual(blocks(r.path + ".21")["Windows.gamma"], 10_000)

    def test_paused(self):
        """Nothing before the first window, which has the plain name."""
        r = Running("--paused")
        r.do("alpha")
        self.told(r.ctl("status"), "not recording yet")
        self.told(r.ctl("stop"), "it is not recording", 1)
        self.told(r.ctl("start"), "recording into " + r.path)
        r.do("gamma")
        self.assertEqual(r.end()[0], 0)
        found = blocks(r.path)
        self.assertEqual((found.get("Windows.gamma"), found.get("Windows.alpha")), (10_000, None))
        self.assertEqual(os.listdir(r.folder), ["w.stm"])
        r = Running("--paused")
        r.do("alpha")
        code, _, errors = r.end()
        self.assertEqual((code, os.listdir(r.folder)), (0, []))
        self.assertIn("no window was begun, with statmem ctl PID start", errors)

    def test_signals_begin_and_end_windows(self):
        r = Running("--paused", "--toggle-signal", "USR2")

        def toggle(state):
            os.kill(r.pid, signal.SIGUSR2)
            for _ in range(100):
                if state in r.ctl("status").stdout.decode():
                    return
                time.sleep(0.05)
            self.fail(r.ctl("status"))
        r.do("alpha")
        toggle("recording into " + r.path)
        r.do("beta")
        toggle("not recording; last")
        r.do("gamma")
        toggle(r.path + ".2")
        r.do("alpha")
        self.assertEqual(r.end()[0], 0)
        self.assertEqual(blocks(r.path).get("Windows.beta"), 10_000)
        self.assertEqual({f for f in blocks(r.path) if f.startswith("Windows.")} & {"Windows.alpha", "Windows.gamma"}, set())
        self.assertEqual(blocks(r.path + ".2").get("Windows.alpha"), 10_000)
        for wrong in ("KILL", "9", "19", "11", "0", "65", "USR3", "33"):
            done = run([programs.STATMEM, "record", "--toggle-signal", wrong, "--", "true"])
            self.assertEqual(done.returncode, 2, wrong)
        self.assertEqual(run([programs.STATMEM, "record", "--paused", "--counters-interval", "0", "--", "true"]).returncode, 2)

    def test_a_window_that_cannot_begin(self):
        r = Running()
        self.told(r.ctl("stop"), "stopped")
        os.mkdir(r.path + ".2")
        self.assertEqual(r.ctl("start").returncode, 1)
        self.told(r.ctl("status"), "not recording; last: " + r.path + "\n")
        os.rmdir(r.path + ".2")
        self.told(r.ctl("start"), r.path + ".2")
        self.assertEqual(r.end()[0], 0)

    def test_killed_in_a_window(self):
        r = Running()
        r.ctl("stop")
        r.ctl("start")
        r.do("gamma")
        os.kill(r.pid, signal.SIGKILL)
        r.end()
        self.assertGreater(blocks(r.path + ".2").get("Windows.gamma", 0), 9_000)
        self.told(r.ctl("status"), "no such process", 1)
        self.assertFalse(os.path.exists(r.socket()))

    def test_its_folder_is_the_users_alone(self):
        r = Running()
        mode = os.stat(os.path.dirname(r.socket()))
        self.assertEqual((stat.S_IMODE(mode.st_mode), mode.st_uid), (0o700, os.geteuid()))
        r.end()
        # A folder that others may enter is not used.
        open_folder = tempfile.mkdtemp(dir=programs.WORK)
        os.mkdir(os.path.join(open_folder, "statmem"), 0o755)
        os.chmod(os.path.join(open_folder, "statmem"), 0o755)
        r = Running(environment={"XDG_RUNTIME_DIR": open_folder})
        self.assertEqual(os.listdir(os.path.join(open_folder, "statmem")), [])
        self.assertEqual(r.end()[0], 0)

    def test_others_are_not_answered(self):
        """Root may send as somebody else; the kernel tells who it was."""
        if os.geteuid() != 0:
            self.skipTest("not root")
        r = Running()
        me = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        me.bind(b"")
        me.settimeout(0.6)
        credentials = (os.getpid().to_bytes(4, "little") + (12345).to_bytes(4, "little") + (12345).to_bytes(4, "little"))
        me.sendmsg([b"stop"], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)], 0, r.socket())
        with self.assertRaises(TimeoutError):
            me.recv(1000)
        for junk in (b"", b"\0", b"stop\0", b"mark", b"x" * 5000, b"stopp", bytes(range(256))):
            me.sendto(junk, r.socket())
        answers = set()
        try:
            while True:
                answers.add(me.recv(2000))
        except TimeoutError:
            pass
        self.assertLessEqual({a[:3] for a in answers}, {b"no ", b"ok "})
        self.told(r.ctl("status"), "ecording")
        me.close()
        self.assertEqual(r.end()[0], 0)

    def test_wrong_usage(self):
        r = Running()
        for arguments in ([], ["go"], ["mark"], ["mark", "a", "b"], ["mark", ""], ["stop", "now"], ["mark", "x" * 1100]):
            self.assertEqual(r.ctl(*arguments).returncode, 2, arguments)
        self.told(run([programs.STATMEM, "ctl", str(os.getpid()), "status"], env=r.environment), "no recorder answers for it", 1)
        self.assertEqual(run([programs.STATMEM, "ctl", "self", "stop"]).returncode, 2)
        answer = json.loads(run([programs.STATMEM, "ctl", "--json", str(r.pid), "status"], env=r.environment).stdout)
        self.assertEqual((answer["pid"], answer["done"]), (r.pid, True))
        os.kill(r.pid, signal.SIGSTOP)
        began = time.monotonic()
        self.told(r.ctl("status"), "no answer", 1)
        self.assertLess(time.monotonic() - began, 20)
        os.kill(r.pid, signal.SIGCONT)
        self.assertEqual(r.end()[0], 0)

    def test_without_readings_there_is_no_socket(self):
        r = Running("--counters-interval", "0")
        self.told(r.ctl("status"), "no recorder answers for it", 1)
        self.assertEqual(r.end()[0], 0)

    def test_seldom_readings_do_not_delay_answers(self):
        r = Running("--counters-interval", "1m")
        began = time.monotonic()
        self.told(r.ctl("status"), "recording into")
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual(r.end()[0], 0)


if __name__ == "__main__":
    programs.main()
