#!/usr/bin/env python3
"""Pushes to a server of its own on loopback, which records what it gets and fails when told to.

Usage: test_push.py STATMEM MKTRACE"""
import gzip
import http.server
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

STATMEM, MKTRACE = (os.path.abspath(a) for a in sys.argv[1:3])
TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "traces")


class Server(http.server.ThreadingHTTPServer):
    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.got, self.answers = [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        status = self.server.answers.pop(0) if self.server.answers else 200
        more, words = {}, b"words"
        if isinstance(status, tuple):
            status, more, words = status
        if status == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if status == "sleep":
            time.sleep(3)
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def log_message(self, *_):
        pass


def push(trace, *arguments, env=None):
    return subprocess.run([STATMEM, "push", *arguments, trace], capture_output=True, check=False, timeout=60,
                          env={**os.environ, **(env or {})}, text=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        trace, server = os.path.join(folder, "basic.statmem"), Server()
        subprocess.run([MKTRACE, os.path.join(TRACES, "basic.txt"), trace], check=True)
        probe = push(trace, "--to", "otlp", "--url", server.url)
        if "without libcurl" in probe.stderr:
            print("built without libcurl")
            return 77
        assert probe.returncode == 0, probe
        path, headers, body = server.got.pop()
        exported = subprocess.run([STATMEM, "export", "--to", "otlp", trace], capture_output=True, check=True).stdout
        assert path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf"
        assert (gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body) == exported
        assert "Authorization" not in headers

        # Pyroscope; what fails for a while is tried again, with the same body.
        server.answers = [503, "drop", 200]
        result = push(trace, "--to", "pyroscope", "--url", server.url + "/", "--name", "app")
        assert result.returncode == 0 and result.stderr.count("trying again") == 2, result
        assert len(server.got) == 3 and len({g[2] for g in server.got}) == 1
        url = urllib.parse.urlsplit(server.got[0][0])
        query = dict(urllib.parse.parse_qsl(url.query))
        assert url.path == "/ingest" and query["format"] == "pprof", query
        assert query["name"] == "app{host=box,pid=4711}" and query["from"] == "1700000000", query
        pprof = subprocess.run([STATMEM, "export", "--to", "pprof", trace], capture_output=True, check=True).stdout
        assert server.got[0][2] == pprof

        # What will not pass is not tried again; the server's words are told.
        server.got.clear()
        server.answers = [401]
        result = push(trace, "--to", "otlp", "--url", server.url)
        assert result.returncode == 1 and "401: words" in result.stderr and len(server.got) == 1, result
        server.got.clear()
        server.answers = [500, 500, 500]
        result = push(trace, "--to", "otlp", "--url", server.url, "--attempts", "2")
        assert result.returncode == 1 and len(server.got) == 2, result

        # The server asks for more time than the pause would be; too many requests, and a request that took too long.
        server.got.clear()
        server.answers = [(429, {"Retry-After": "2"}, b"slow down"), 408, 200]
        began = time.monotonic()
        result = push(trace, "--to", "otlp", "--url", server.url)
        assert result.returncode == 0 and len(server.got) == 3, result
        assert "429: slow down; trying again in 2.0 s" in result.stderr, result
        assert time.monotonic() - began >= 3, "both pauses"
        server.got.clear()
        server.answers = ["sleep", 200]
        result = push(trace, "--to", "otlp", "--url", server.url, "--timeout", "1")
        assert result.returncode == 0 and len(server.got) == 2 and "imed out" in result.stderr, result

        # OTLP: 200, and yet nothing was kept. Field 1 of the answer: 1 = profiles thrown away, 2 = why.
        def answer(rejected, why):
            inside = (b"\x08" + bytes([rejected]) if rejected else b"") + (b"\x12" + bytes([len(why)]) + why if why else b"")
            return (200, {"Content-Type": "application/x-protobuf"}, b"\x0a" + bytes([len(inside)]) + inside)
        server.answers = [answer(1, b"no such\x1b[31m tenant")]
        result = push(trace, "--to", "otlp", "--url", server.url)
        assert result.returncode == 1 and "threw the profile away: no such" in result.stderr, result
        assert "\x1b" not in result.stderr, result
        server.answers = [answer(0, b"soon deprecated")]
        result = push(trace, "--to", "otlp", "--url", server.url)
        assert result.returncode == 0 and "the server says: soon deprecated" in result.stderr, result
        for words in (b"", b"{}", b"\x0a\x7f\x08\x01", b"\x0a\x02\x08", b"\xff" * 30, b"\x0a\x00"):
            server.answers = [(200, {}, words)]
            result = push(trace, "--to", "otlp", "--url", server.url)
            assert result.returncode == 0 and result.stderr == "", (words, result)

        # Credentials: a file, the environment; not the command line.
        secret = os.path.join(folder, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write("Bearer from-file\n")
        for more, env, want in ((["--authorization", secret], {}, "Bearer from-file"),
                                ([], {"STATMEM_AUTHORIZATION": "Bearer from-env"}, "Bearer from-env")):
            server.got.clear()
            assert push(trace, "--to", "otlp", "--url", server.url, *more, env=env).returncode == 0
            assert server.got[0][1]["Authorization"] == want
        assert push(trace, "--to", "otlp", "--url", "http://me:pw@127.0.0.1/").returncode == 2

        # Nobody listens.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        result = push(trace, "--to", "otlp", "--url", f"http://127.0.0.1:{port}", "--attempts", "1")
        assert result.returncode == 1 and "nothing was stored" in result.stderr, result
    return 0


sys.exit(main())
