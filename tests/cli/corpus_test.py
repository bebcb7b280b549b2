#!/usr/bin/env python3
"""`statmem info --json` on every trace of the corpus against what the original reader counted; and what
`top` and `dump` say must agree with it.

Usage: corpus_test.py STATMEM. The corpus is $STATMEM_CORPUS or shared/corpus beside the source tree; exit 77
(skipped) without it."""
import collections
import json
import os
import subprocess
import sys


def run(*args):
    return subprocess.run(args, capture_output=True, check=False)


def check(name, what, got, expected, failures):
    if got != expected:
        failures.append(f"{name}: {what}: got {got}, expected {expected}")


def check_info(statmem, path, name, want, failures):
    result = run(statmem, "info", "--json", path)
    if result.returncode != 0:
        if want["error"] and want["alloc"] == 0 and want["bytes"] < 66:
            return None  # cut inside the first header: nothing to read
        failures.append(f"{name}: exit {result.returncode}: {result.stderr.decode()}")
        return None
    info = json.loads(result.stdout)
    events = info["events"]
    check(name, "alloc_minor", events["alloc_minor"], want["alloc"], failures)
    check(name, "alloc_major", events["alloc_major"], want["alloc_major"], failures)
    check(name, "alloc_external", events["alloc_external"], want["alloc_ext"], failures)
    check(name, "promote", events["promote"], want["promote"], failures)
    check(name, "collect", events["collect"], want["collect"], failures)
    check(name, "samples", info["samples"], want["nsamples"], failures)
    check(name, "words", info["words"], want["sum_len_words"], failures)
    check(name, "max_depth", info["max_depth"], want["max_bt_len"], failures)
    check(name, "sum_depth", info["sum_depth"], want["sum_bt_len"], failures)
    header = info["header"]
    for key, field in (("rate", "sample_rate"), ("exe", "executable"), ("pid", "pid"),
                       ("params", "runtime_params"), ("word_size", "word_bits")):
        if key in want:
            check(name, field, header[field], want[key], failures)
    domains = {str(d["id"]): [d["allocations"], d["samples"]]
               for d in info["domains"] if d["allocations"] > 0}
    check(name, "domains", domains, want["per_domain"], failures)
    if want["last_time_us"]:
        check(name, "last time", info["last_event_ns"] // 1000, want["last_time_us"], failures)
    if not want["error"] and "cut" not in name:
        check(name, "losses", [l for l in info["losses"]
                               if l["kind"] not in ("names", "time", "orphans")], [], failures)
    if "mixcut" in name:
        check(name, "a loss is told", bool(info["losses"]), True, failures)
        check(name, "--strict", run(statmem, "info", "--strict", path).returncode, 1, failures)
    return info


def check_top(statmem, path, name, info, failures):
    for by in ("site", "function", "line", "file", "domain", "thread", "source"):
        result = run(statmem, "top", "--json", "--top", "0", "--by", by, path)
        if result.returncode != 0:
            failures.append(f"{name}: top --by {by}: exit {result.returncode}")
            continue
        top = json.loads(result.stdout)
        check(name, f"top {by} allocated", sum(r["allocated"]["samples"] for r in top["rows"]),
              info["samples"], failures)
        check(name, f"top {by} peak", sum(r["peak"]["samples"] for r in top["rows"]),
              info["peak"]["samples"], failures)
        check(name, f"top {by} live", sum(r["live"]["samples"] for r in top["rows"]),
              info["live"]["samples"], failures)
        check(name, f"top {by} promoted", sum(r["promoted"]["samples"] for r in top["rows"]),
              info["promoted"]["samples"], failures)
        for row in top["rows"]:
            if "with_callees" in row and row["with_callees"]["samples"] < row["allocated"]["samples"]:
                failures.append(f"{name}: top {by}: {row['name']} has less with callees than alone")


def check_dump(statmem, path, name, info, failures):
    """Recomputes figures from the dumped events in another way."""
    result = run(statmem, "dump", "--json", "--no-stacks", path)
    kinds = collections.Counter()
    live, size = {}, 0
    samples = peak = last = 0
    for line in result.stdout.splitlines():
        event = json.loads(line)
        if event["time_ns"] < last:
            failures.append(f"{name}: dump goes back in time at {line}")
            break
        last = event["time_ns"]
        kinds[event["event"]] += 1
        key = event.get("object_stream"), event.get("object_seq")
        if event["event"] == "alloc":
            samples += event["samples"]
            live[key] = event["samples"]
            size += event["samples"]
            peak = max(peak, size)
        elif event["event"] == "collect":
            size -= live.pop(key, 0)
    events = info["events"]
    check(name, "dump allocs", kinds["alloc"],
          events["alloc_minor"] + events["alloc_major"] + events["alloc_external"], failures)
    check(name, "dump promotions", kinds["promote"], events["promote"], failures)
    check(name, "dump collections", kinds["collect"], events["collect"], failures)
    check(name, "dump samples", samples, info["samples"], failures)
    check(name, "dump peak", peak, info["peak"]["samples"], failures)
    check(name, "dump live", size, info["live"]["samples"], failures)


def check_places(statmem, path, name, failures):
    """Sums by site, function totals without double counting, and peak shares, computed anew from the dumped
    stacks in the plainest way."""
    own, total, peak_shares = (collections.Counter() for _ in range(3))
    live, now = {}, collections.Counter()
    size = peak = 0
    for line in run(statmem, "dump", "--json", path).stdout.splitlines():
        event = json.loads(line)
        key = event.get("object_stream"), event.get("object_seq")
        if event["event"] == "alloc":
            stack = event["stack"]
            if not stack or event.get("stack_lost"):
                return False
            spot = stack[0]
            site = (spot.get("function"), spot.get("file"), spot.get("line"),
                    spot.get("start_char"), spot.get("end_char")) if "function" in spot \
                else ("code", spot.get("code"))
            own[site] += event["samples"]
            for f in {(f.get("function"), f.get("file")) for f in stack if "function" in f}:
                total[f] += event["samples"]
            live[key] = site, event["samples"]
            now[site] += event["samples"]
            size += event["samples"]
            if size > peak:
                peak, peak_shares = size, now.copy()
        elif event["event"] == "collect" and key in live:
            site, samples = live.pop(key)
            now[site] -= samples
            size -= samples
    got_own, got_peak, got_total = (collections.Counter() for _ in range(3))
    top = json.loads(run(statmem, "top", "--json", "--top", "0", "--no-callers", path).stdout)
    for row in top["rows"]:
        site = (row["function"], row["file"], row["line"], row["start_char"], row["end_char"]) \
            if "file" in row else ("code", row.get("code"))
        got_own[site] += row["allocated"]["samples"]
        got_peak[site] += row["peak"]["samples"]
    check(name, "sums by site", got_own, own, failures)
    check(name, "peak by site", got_peak, +peak_shares, failures)
    top = json.loads(run(statmem, "top", "--json", "--top", "0", "--by", "function", "--inclusive",
                         "--no-callers", path).stdout)
    for row in top["rows"]:
        if "place" in row:
            function = row["name"] if row["name"] != "?" else ""
            got_total[(function, row["place"])] = row["with_callees"]["samples"]
    check(name, "function totals", got_total, total, failures)
    return True


def main():
    statmem = sys.argv[1]
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    corpus = os.environ.get("STATMEM_CORPUS", os.path.join(source, "..", "shared", "corpus"))
    expected_path = os.path.join(corpus, "expected.json")
    if not os.path.exists(expected_path):
        print("no corpus at", corpus)
        return 77
    with open(expected_path, encoding="utf-8") as f:
        expected = json.load(f)
    failures, places = [], 0
    for name, want in sorted(expected.items()):
        path = os.path.join(corpus, name)
        info = check_info(statmem, path, name, want, failures)
        if info is not None:
            check_top(statmem, path, name, info, failures)
            check_dump(statmem, path, name, info, failures)
            if want["sum_bt_len"] < 300000:
                places += check_places(statmem, path, name, failures)
    for failure in failures:
        print(failure)
    if places < 5:
        failures.append(f"only {places} traces could be recomputed by place")
    print(f"{len(expected)} traces, {places} recomputed by place, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
