#!/usr/bin/env python3
"""The viewer's server: who may ask, what it refuses, and that its numbers are the command line's.

Usage: api_test.py STATMEM MKTRACE"""
import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(HERE, "..", "cli", "traces")
CASES = os.path.join(HERE, "..", "filter", "cases.json")


class Server:
    def __init__(self, statmem, arguments):
        self.process = subprocess.Popen([statmem, "view", "--no-open", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=dict(os.environ, STATMEM_CACHE=""))
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            sys.exit(f"view did not start: {self.process.stderr.read()}")
        parts = urllib.parse.urlsplit(self.url)
        self.port = parts.port
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]

    def ask(self, path, method="GET", headers=None, token=True, host=None, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        c.putrequest(method, path, skip_host=True)
        c.putheader("Host", host if host is not None else f"127.0.0.1:{self.port}")
        if token:
            c.putheader("Authorization", f"Bearer {self.token}")
        for name, value in (headers or {}).items():
            c.putheader(name, value)
        if body is not None:
            c.putheader("Content-Length", str(len(body)))
        c.endheaders(body)
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, dict(r.getheaders()), data

    def get(self, path, **parameters):
        query = urllib.parse.urlencode([(k, v) for k, vs in parameters.items() for v in (vs if isinstance(vs, list) else [vs])])
        status, _, data = self.ask(f"/api/v1/{path}" + (f"?{query}" if query else ""))
        return status, json.loads(data)

    def wait(self):
        for _ in range(200):
            traces = self.get("traces")[1]["traces"]
            if all(t["state"] != "loading" for t in traces):
                return traces
            time.sleep(0.05)
        sys.exit("the traces are not loaded")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def equal(self, what, got, wanted):
        if got == wanted:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}: got {got!r}, wanted {wanted!r}")


def security(s, check):
    status, headers, _ = s.ask("/api/v1/traces")
    check.equal("with the token", status, 200)
    check.equal("no other origin", "Access-Control-Allow-Origin" in headers, False)
    policy = headers["Content-Security-Policy"]
    check.equal("policy", "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy, True)
    check.equal("sniffing", headers["X-Content-Type-Options"], "nosniff")
    check.equal("without", s.ask("/api/v1/traces", token=False)[0], 401)
    check.equal("the page without", s.ask("/", token=False)[0], 401)
    check.equal("a wrong token", s.ask("/", token=False, headers={"Authorization": "Bearer " + "0" * 32})[0], 401)
    check.equal("half a token", s.ask(f"/?token={s.token[:16]}", token=False)[0], 401)
    check.equal("an empty one", s.ask("/?token=", token=False)[0], 401)
    for host in ("evil.example", f"evil.example:{s.port}", "127.0.0.1", f"127.0.0.1.evil.example:{s.port}", ""):
        check.equal(f"host {host!r}", s.ask("/api/v1/traces", host=host)[0], 403)
    check.equal("localhost", s.ask("/api/v1/traces", host=f"localhost:{s.port}")[0], 200)
    status, headers, _ = s.ask(f"/?token={s.token}", token=False)
    check.equal("the token moves into a cookie", (status, headers.get("Location")), (302, "/"))
    cookie = headers["Set-Cookie"]
    check.equal("strict cookie", "HttpOnly" in cookie and "SameSite=Strict" in cookie, True)
    check.equal("by cookie", s.ask("/", token=False, headers={"Cookie": cookie.split(";")[0]})[0], 200)
    for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/index.html/..", "/api/v1/../../x"):
        check.equal(path, s.ask(path)[0] in (400, 404), True)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        check.equal(method, s.ask("/api/v1/traces", method=method, body=b"x" * 100)[0] in (400, 405), True)
    raw = socket.create_connection(("127.0.0.1", s.port))
    raw.settimeout(20)
    try:
        raw.sendall(b"GET /" + b"a" * 1000000)
        answer = raw.recv(100)
    except OSError:
        answer = b"closed"
    check.equal("an endless request line", answer[:12] in (b"closed", b"", b"HTTP/1.1 414", b"HTTP/1.1 431", b"HTTP/1.1 400", b"HTTP/1.1 413"), True)
    raw.close()
    # Listening on the loopback only: our other addresses do not answer.
    listening = [line.split() for line in open("/proc/net/tcp", encoding="ascii") if f":{s.port:04X} " in line]
    check.equal("loopback only", {x[1].split(":")[0] for x in listening if x[3] == "0A"}, {"0100007F"})


def errors(s, check):
    check.equal("no such path", s.get("nothing")[0], 404)
    check.equal("no such trace", s.get("summary", trace=9)[0], 404)
    status, body = s.get("tree", filter="size >= banana")
    check.equal("a wrong filter", (status, body["column"], "size" in body["expected"]), (400, 9, True))
    for path, bad in (("tree", {"min_share": "2"}), ("tree", {"key": "x"}), ("tree", {"weight": "x"}), ("tree", {"focus": "nobody"}),
                      ("tree", {"depth": "-1"}), ("timeline", {"points": "0"}), ("timeline", {"from": "x"}), ("groups", {"by": "x"}),
                      ("groups", {"by": "function,function,function,function,function"}), ("leaks", {"generations": "1"}),
                      ("fragments", {"min_share": "x"}), ("source", {}), ("compare", {"b": "77"}), ("summary", {"trace": "x"})):
        status, body = s.get(path, **bad)
        check.equal(f"{path} {bad}", (status in (400, 404), isinstance(body["error"], str)), (True, True))
    check.equal("files outside of the trace", s.get("source", file="/etc/passwd")[1]["found"], False)


def same_as_command_line(s, statmem, trace, check):
    def command(*arguments):
        done = subprocess.run([statmem, *arguments, "--json", trace], stdout=subprocess.PIPE, check=True, text=True,
                              env=dict(os.environ, STATMEM_CACHE=""))
        return json.loads(done.stdout)

    for text in ("", "promoted", "domain = 1", 'inside "Work.run"', "size >= 4w and not collected", "live at peak; hide \"List.map\""):
        cli = command("query", "--by", "function,domain", "--weight", "allocated,live@end", "--filter", text)
        api = s.get("groups", by="function,domain", weight=["allocated", "live@end"], filter=text)[1]
        check.equal(f"groups {text}", (api["rows"], api["totals"]), (cli["rows"], cli["totals"]))
        cli = command("tree", "--min-share", "0", "--weight", "live@peak", "--filter", text)
        api = s.get("tree", min_share="0", weight="live@peak", filter=text)[1]
        check.equal(f"tree {text}", (api["nodes"], api["places"]), (cli["nodes"], cli["places"]))
        cli = command("timeline", "--points", "7", "--filter", text)
        api = s.get("timeline", points="7", filter=text)[1]
        check.equal(f"timeline {text}", api["series"], cli["series"])
        cli = command("leaks", "--filter", text)
        check.equal(f"leaks {text}", s.get("leaks", filter=text)[1]["sites"], cli["sites"])
    summary = s.get("summary")[1]
    check.equal("summary", [summary[k]["value"] for k in ("allocated", "live_end", "peak", "promoted")], [192, 96, 128, 16])
    check.equal("peak", summary["peak_ns"], 400000)
    places = {r["place"]["name"]: (r["own"][0]["value"], r["total"][0]["value"]) for r in s.get("places")[1]["rows"]}
    check.equal("places", places, {"Prog.main": (0, 192), "Work.run": (64, 80), "List.map": (48, 48), "Work.step": (0, 80),
                                   "List.cons": (80, 80)})
    check.equal("search", [p["name"] for p in s.get("search", text="LIST")[1]["places"]], ["List.map", "List.cons"])
    compare = s.get("compare", filter_a="domain = 0", filter_b="domain = 1")[1]
    check.equal("compare", (compare["total_a"]["value"], compare["total_b"]["value"], compare["delta"]), (80, 112, 32))
    lines = {x["line"]: x["own"]["value"] for x in s.get("source", file="list.ml")[1]["lines"]}
    check.equal("source", lines, {5: 48, 8: 80})


def profiles(s, check):
    for name in ("heap", "allocs"):
        status, headers, data = s.ask(f"/debug/pprof/{name}")
        raw = gzip.decompress(data)
        check.equal(f"pprof {name}", (status, headers["Content-Type"], b"List.map" in raw), (200, "application/octet-stream", True))
    check.equal("pprof with a wrong filter", s.ask("/debug/pprof/heap?filter=size")[0], 400)
    check.equal("pprof without a token", s.ask("/debug/pprof/heap", token=False)[0], 401)
    check.equal("pprof of something else", s.ask("/debug/pprof/goroutine")[0], 404)


def filters(s, check):
    wrong = 0
    for case in json.load(open(CASES, encoding="utf-8")):
        answer = s.get("filter", text=case["text"])[1]
        if "canonical" in case:
            wrong += answer.get("canonical") != case["canonical"]
        else:
            wrong += answer.get("column") != case["error_column"]
    check.equal("the shared list of filters", wrong, 0)


def follow(statmem, mktrace, folder, check):
    """A trace that is replaced by a longer one is shown anew."""
    path = os.path.join(folder, "growing.stm")
    subprocess.run([mktrace, os.path.join(TRACES, "recursion.txt"), path], check=True)
    s = Server(statmem, ["--follow", path])
    before = s.wait()[0]
    subprocess.run([mktrace, os.path.join(TRACES, "basic.txt"), path + ".new"], check=True)
    os.rename(path + ".new", path)
    now = before
    for _ in range(100):
        now = s.get("traces")[1]["traces"][0]
        if now["revision"] > before["revision"] and now["rows"] == 4:
            break
        time.sleep(0.05)
    check.equal("followed", (now["revision"] > before["revision"], now["rows"], now["following"]), (True, 4, True))
    check.equal("ends", s.end(), 0)


def memory(statmem, mktrace, folder, check):
    """As at the command line; long courses are thinned, and no peak is lost."""
    usual, dense = os.path.join(folder, "memory.stm"), os.path.join(folder, "dense.stm")
    subprocess.run([mktrace, os.path.join(TRACES, "memory.txt"), usual], check=True)
    text = dense + ".txt"
    with open(text, "w", encoding="ascii") as f:
        f.write("meta rate 0.5\nloc 1 a.ml A.f 1 2 3\nowner 0 0 1 main\nat 0\nalloc 0:0 1 1 minor 1\n")
        for i in range(5000):
            f.write(f"at {i * 10}\ncounters 0 1={10_000_000 if i == 3333 else 1000 + i},14=1000,15=0\n")
        f.write("end 1\n")
    subprocess.run([mktrace, text, dense], check=True)
    cli = json.loads(subprocess.run([statmem, "memory", "--json", usual], stdout=subprocess.PIPE, check=True).stdout)
    s = Server(statmem, [usual, dense])
    one, two = s.wait()
    for member in ("first", "peak", "last", "growth", "grew", "verdict", "gaps", "gaps_ns", "interval_ns"):
        check.equal(f"memory {member}", one["memory"][member], cli[member])
    for part in ("ns", "rss", "file", "heap", "native", "kept", "unexplained", "absent"):
        check.equal(f"memory column {part}", one["memory"][part], [m[part] for m in cli["moments"]])
    check.equal("thinned", (len(two["memory"]["ns"]), len(two["memory"]["rss"]), max(two["memory"]["rss"])), (2000, 2000, 10_000_000))
    rss = [c for c in two["counters"] if c["name"] == "rss_bytes"][0]
    check.equal("a counter, thinned", (len(rss["ns"]) <= 2001, rss["ns"][0], rss["ns"][-1], rss["values"][-1]), (True, 0, 49_990_000, 5999))
    check.equal("ends", s.end(), 0)


def main():
    statmem, mktrace = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    check = Checks()
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "basic.stm")
        subprocess.run([mktrace, os.path.join(TRACES, "basic.txt"), trace], check=True)
        text = os.path.join(folder, "text.stm")
        with open(text, "w", encoding="ascii") as f:
            f.write("no trace at all\n")
        s = Server(statmem, [trace, text])
        states = [t["state"] for t in s.wait()]
        check.equal("states", states, ["ready", "failed"])
        check.equal("a failed trace", s.get("summary", trace="1")[0], 404)
        security(s, check)
        errors(s, check)
        same_as_command_line(s, statmem, trace, check)
        filters(s, check)
        profiles(s, check)
        done = subprocess.run([statmem, "view", "--no-open", "--port", str(s.port), trace], stderr=subprocess.PIPE, text=True, check=False)
        check.equal("a port that is taken", (done.returncode, "without --port" in done.stderr), (1, True))
        other = Server(statmem, [trace])
        check.equal("the next port is taken", other.port != s.port, True)
        check.equal("another run, another token", s.ask("/", token=False, headers={"Authorization": f"Bearer {other.token}"})[0], 401)
        other.end()
        check.equal("ends", s.end(), 0)
        follow(statmem, mktrace, folder, check)
        memory(statmem, mktrace, folder, check)
    print(f"{check.passed} passed, {check.failed} failed")
    sys.exit(check.failed > 0)


main()
