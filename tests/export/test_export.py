#!/usr/bin/env python3
"""Exports traces and has each format read by its real consumer. Every total must equal the reports' (query), rounded.

Usage: test_export.py STATMEM MKTRACE DH_VIEW_MJS"""
import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

STATMEM, MKTRACE, DH_VIEW = (os.path.abspath(a) for a in sys.argv[1:4])
TRACES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli", "traces")
DH_VIEW_JS = "/usr/libexec/valgrind/dh_view.js"
WEIGHTS = ("allocated", "live@end", "live@peak", "live@own-peak", "freed", "promoted", "early", "lifetime", "objects",
           "samples")
missing = set()


def run(*command, check=True):
    result = subprocess.run(command, capture_output=True, check=False, timeout=120)
    if check and result.returncode != 0:
        raise AssertionError(f"{command}: exit {result.returncode}\n{result.stderr.decode(errors='replace')}")
    return result


def export(trace, form, *more):
    return run(STATMEM, "export", "--to", form, *more, trace).stdout


def expected(trace, weight, *more):
    report = json.loads(run(STATMEM, "query", "--by", "heap", "--weight", weight, "--json", *more, trace).stdout)
    return report["totals"][0]["value"]


def near(got, want, what):
    # Rounded half away from zero, once.
    assert abs(got - want) <= 0.5 + 1e-9 * abs(want), f"{what}: {got}, the report says {want}"


def tool(name):
    found = shutil.which(name)
    if found is None:
        missing.add(name)
    return found


def check_totals(trace, *more):
    for weight in WEIGHTS:
        want = expected(trace, weight, *more)
        text = export(trace, "collapsed", "--weight", weight, *more).decode()
        near(sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines()), want, f"collapsed {weight}")
        rows = list(csv.DictReader(io.StringIO(export(trace, "csv", "--weight", weight, *more).decode())))
        assert abs(sum(float(r["value"]) for r in rows) - want) <= 1e-9 * abs(want) + 1e-9, f"csv {weight}"
        lines = [json.loads(x) for x in export(trace, "jsonl", "--weight", weight, *more).decode().splitlines()]
        assert [float(x["value"]) for x in lines] == [float(r["value"]) for r in rows], f"jsonl {weight}"
    scope = json.loads(export(trace, "speedscope", *more))
    wanted = {"alloc_space": expected(trace, "allocated", *more), "alloc_objects": expected(trace, "objects", *more),
              "inuse_space": expected(trace, "live@end", *more)}
    frames = scope["shared"]["frames"]
    for profile in scope["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= f < len(frames) for s in profile["samples"] for f in s)
        if profile["name"] in wanted:
            near(profile["endValue"], wanted[profile["name"]], f"speedscope {profile['name']}")


def pprof_totals(raw):
    """{type: sum} and the raw text's stacks."""
    types, sums, inside = None, None, False
    for line in raw.splitlines():
        if line.startswith("Locations"):
            break
        if line.startswith("Samples:"):
            inside = True
        elif inside and types is None:
            types = [t.split("/")[0] for t in line.split()]
            sums = [0] * len(types)
        elif inside and re.match(r"^\s*\d[\d\s]*:", line):
            for i, x in enumerate(line.split(":")[0].split()):
                sums[i] += int(x)
    return dict(zip(types, sums))


def check_pprof(trace, folder, *more):
    path = os.path.join(folder, "out.pb.gz")
    run(STATMEM, "export", "--to", "pprof", "-o", path, *more, trace)
    with open(path, "rb") as file:
        data = file.read()
    assert gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if tool("go") is None:
        return None
    os.environ["HOME"] = folder
    raw = run("go", "tool", "pprof", "-raw", path).stdout.decode()
    totals = pprof_totals(raw)
    near(totals["alloc_space"], expected(trace, "allocated", *more), "pprof alloc_space")
    near(totals["inuse_space"], expected(trace, "live@end", *more), "pprof inuse_space")
    near(totals["alloc_objects"], expected(trace, "objects", *more), "pprof alloc_objects")
    return raw, path


def check_basic(trace, folder):
    """Two domains, an inlined call, all figures known by hand: tests/cli/traces/basic.txt."""
    got = check_pprof(trace, folder)
    if got is not None:
        raw, path = got
        assert re.search(r"List\.cons list\.ml:8 s=0\n\s+Work\.step work\.ml:30", raw), raw
        for label in ("domain:[0]", "domain:[1]", "source:[external custom]", "thread:[worker]"):
            assert label in raw, label
        top = run("go", "tool", "pprof", "-top", path).stdout.decode()
        assert re.search(r"\b80B 41\.67%.* List\.cons \(inline\)", top), top
        assert re.search(r"\b64B .* 80B .* Work\.run\n", top), top
        lines = run("go", "tool", "pprof", "-sample_index=inuse_space", "-lines", "-top", path).stdout.decode()
        assert re.search(r"80B 83\.33%.* List\.cons list\.ml:8 \(inline\)", lines), lines
        own = os.path.join(folder, "peak.pb.gz")
        run(STATMEM, "export", "--to", "pprof", "--weight", "live@peak", "-o", own, trace)
        assert pprof_totals(run("go", "tool", "pprof", "-raw", own).stdout.decode())["inuse_space"] == 128
    assert export(trace, "collapsed").decode() == (
        "Prog.main;Work.run 64\nProg.main;Work.run;List.map 16\nProg.main;List.map 32\n"
        "Prog.main;Work.step;List.cons 80\n")
    assert export(trace, "collapsed", "--filter", 'hide "Work.run"').decode().startswith("Prog.main 64\n")


def check_callgrind(trace, folder, *more):
    path = os.path.join(folder, "callgrind.out.1")
    run(STATMEM, "export", "--to", "callgrind", "-o", path, *more, trace)
    if tool("callgrind_annotate") is None:
        return
    text = run("callgrind_annotate", path).stdout.decode()
    total = re.search(r"^ *([\d,.]+) .*PROGRAM TOTALS", text, re.M)
    near(int(total[1].replace(",", "").replace(".", "0")), expected(trace, "allocated", *more), "callgrind_annotate")
    if os.path.basename(trace) == "basic.statmem" and not more:
        inclusive = run("callgrind_annotate", "--inclusive=yes", path).stdout.decode()
        assert re.search(r"^ *192 .*Prog\.main", inclusive, re.M), inclusive
        assert re.search(r"^ *80 .*Work\.run", inclusive, re.M), inclusive


def check_massif(trace, folder, *more):
    path = os.path.join(folder, "massif.out.1")
    run(STATMEM, "export", "--to", "massif", "-o", path, *more, trace)
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    peak = [int(x) for x in re.findall(r"mem_heap_B=(\d+)\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=peak", text)]
    last = int(re.findall(r"mem_heap_B=(\d+)", text)[-1])
    near(last, expected(trace, "live@end", *more), "massif, the end")
    if peak:
        near(peak[0], expected(trace, "live@own-peak", *more), "massif, the peak")
    if tool("ms_print") is not None:
        shown = run("ms_print", path).stdout.decode(errors="replace")
        if peak:
            assert f"100.00% ({peak[0]:,}B)" in shown, shown


def check_dhat(trace, folder, *more):
    path = os.path.join(folder, "dhat.out.1")
    run(STATMEM, "export", "--to", "dhat", "-o", path, *more, trace)
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    near(sum(p["tb"] for p in data["pps"]), expected(trace, "allocated", *more), "dhat tb")
    near(sum(p["gb"] for p in data["pps"]), expected(trace, "live@own-peak", *more), "dhat gb")
    if not os.path.exists(DH_VIEW_JS):
        missing.add("dh_view.js")
    elif tool("node") is not None and data["pps"]:
        seen = json.loads(run("node", DH_VIEW, DH_VIEW_JS, path).stdout)
        near(seen["total"], expected(trace, "allocated", *more), "dh_view, total")
        near(seen["peak"], expected(trace, "live@own-peak", *more), "dh_view, peak")
        near(seen["end"], expected(trace, "live@end", *more), "dh_view, end")


def varint(data, at):
    x = shift = 0
    while True:
        byte = data[at]
        at += 1
        x |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return x, at


def fields(data):
    """[(number, value)] of a message; bytes where it is one."""
    at, out = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            x, at = varint(data, at)
        elif tag & 7 == 1:
            x, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert tag & 7 == 2, tag
            n, at = varint(data, at)
            x, at = data[at:at + n], at + n
        out.append((tag >> 3, x))
    return out


def of(message, number):
    return [x for n, x in fields(message) if n == number]


def check_otlp(trace, *more):
    """The schema's tables and references, by numbers; protoc agrees that it is one message."""
    data = export(trace, "otlp", *more)
    dictionary, = of(data, 2)
    strings = [s.decode() for s in of(dictionary, 5)]
    stacks, locations, functions = of(dictionary, 7), of(dictionary, 2), of(dictionary, 3)
    attributes = of(dictionary, 6)
    assert strings[0] == "" and stacks[0] == locations[0] == functions[0] == attributes[0] == b""
    profiles = of(of(of(data, 1)[0], 2)[0], 2)
    totals = {}
    for profile in profiles:
        kind = strings[of(of(profile, 1)[0], 1)[0]]
        totals[kind] = 0
        for sample in of(profile, 2):
            assert (of(sample, 1) or [0])[0] < len(stacks)
            at, indices = 0, of(sample, 2)[0]
            while at < len(indices):
                index, at = varint(indices, at)
                assert 0 < index < len(attributes)
            totals[kind] += varint(of(sample, 4)[0], 0)[0]
    for location in locations[1:]:
        for line in of(location, 3):
            assert 0 < of(line, 1)[0] < len(functions)
    near(totals["alloc_space"], expected(trace, "allocated", *more), "otlp alloc_space")
    near(totals["inuse_space"], expected(trace, "live@end", *more), "otlp inuse_space")
    if tool("protoc") is not None:
        result = subprocess.run(["protoc", "--decode_raw"], input=data, capture_output=True, check=False)
        assert result.returncode == 0, result.stderr


def check_refusals(trace, folder):
    for arguments, words in ((["--to", "nothing"], "--to must be one of"), ([], "--to is missing"),
                             (["--to", "dhat", "--weight", "freed"], "no choice of weight")):
        result = run(STATMEM, "export", *arguments, trace, check=False)
        assert result.returncode == 2 and words in result.stderr.decode(), result
    result = run(STATMEM, "export", "--to", "csv", "-o", os.path.join(folder, "no", "such"), trace, check=False)
    assert result.returncode == 1 and result.stderr, result


def main():
    with tempfile.TemporaryDirectory() as folder:
        traces = []
        for name in ("basic", "frames", "recursion", "hostile"):
            traces.append(os.path.join(folder, name + ".statmem"))
            run(MKTRACE, os.path.join(TRACES, name + ".txt"), traces[-1])
        check_basic(traces[0], folder)
        check_refusals(traces[0], folder)
        for trace in traces:
            for more in ((), ("--filter", "not collected"), ("--filter", "size >= 10w")):
                check_totals(trace, *more)
                check_pprof(trace, folder, *more)
                check_callgrind(trace, folder, *more)
                check_massif(trace, folder, *more)
                check_dhat(trace, folder, *more)
                check_otlp(trace, *more)
    print("not installed, their checks left out:", ", ".join(sorted(missing)) or "nothing")


main()
