#!/usr/bin/env python3
"""The analysis against a slow and obvious one (reference.py), on random traces and with random filters: which rows are selected,
every weight, the peak and the live curve must be the same to the last unit.

    test_reference.py STATMEM MKTRACE MAKE_TRACE QUERY_TOOL [FIRST_SEED [SEEDS]]
"""
import os
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference

POINTS = 23
FILTERS = 40
CORPUS = ["git-viewer-test_trace.ctf", "git-lists_and_sets-1f74dcf3.ctf", "o413-head-threads-d1-r1e-3.ctf",
          "o413-head-ext-d1-r1e-4.ctf"]  # memtrace's, small ones


def random_text(rng):
    """A trace in mktrace's words. Sizes, ages and samples reach into the wide tables; streams free each other's objects."""
    streams = rng.randrange(1, 5)
    rate = rng.choice(["1", "0.01", "0.0001"])
    out = [f"meta rate {rate}", f"meta word_bits {rng.choice([64, 64, 32])}", f"meta start_ns {1796119205000000000 + rng.randrange(10**9)}"]
    modules = ["Stdlib.List", "Main", "Main.Inner", "Dune__exe.Parser", "lower", "caml_c"]
    codes = list(range(1, rng.randrange(2, 30)))
    for code in codes:
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            module = rng.choice(modules)
            file = rng.choice(["list.ml", "src/main.ml", "bin/main.ml", "lib/parser.ml", "[libc.so.6]"])
            name = rng.choice([f"{module}.f{rng.randrange(3)}", f"{module}.f{rng.randrange(3)}", "plain", f"{module}.(fun)"])
            out.append(f"loc {code} {file} {name} {rng.randrange(6)} 1 {rng.randrange(2, 5)}")
    now = 0
    for s in range(streams):
        name = rng.choice(["", "main", "worker\\_1", "worker\\_2"])
        out.append(f"owner {s} {rng.randrange(3)} {rng.choice([0, 4000 + s])} {name}")
    if rng.random() < 0.2:
        out.append("mark 0 begin")
    objects, made = [], [0] * streams
    heap_too = rng.random() < 0.5  # what OCaml's heap takes from the system is recorded beside the blocks in it
    alike = rng.random() < 0.3  # the same largest sum is reached several times
    stack = []
    for _ in range(rng.choice([0, 1, 40, 300, 300])):
        if rng.random() < 0.6:
            now += rng.choice([0, 1, 7, 60, 300]) if rng.random() < 0.99 else 3000000
            out.append(f"at {now}")
        kind = rng.random()
        s = rng.randrange(streams)
        if kind < 0.55 or not objects:
            if rng.random() < 0.7:
                stack = stack[:rng.randrange(len(stack) + 1)] + [rng.choice(codes) for _ in range(rng.randrange(5))]
            size = rng.randrange(1, 300) if rng.random() < 0.95 else rng.choice([2**32 - 2, 2**32 - 1, 2**32, 2**35])
            samples = 1 if alike else rng.randrange(1, 5) if rng.random() < 0.9 else rng.randrange(250, 300)
            words = [f"alloc {s}:{made[s]} {size} {samples} {rng.choice(reference.HEAPS[:3])}"]
            if heap_too and rng.random() < 0.2:
                words = [f"alloc {s}:{made[s]} {size} {samples} native", f"origin={rng.randrange(5, 8)}"]
            elif rng.random() < 0.2:
                words.append(f"origin={rng.randrange(5)}")
            if rng.random() < 0.1:
                words.append("bytes")
            if stack:
                words.append(",".join(map(str, stack)))
            out.append(" ".join(words))
            objects.append([s, made[s], False])
            made[s] += 1
        else:
            k = rng.randrange(len(objects))
            owner, seq, promoted = objects[k]
            by = owner if rng.random() < 0.7 else s
            if kind < 0.7 and not promoted:
                out.append(f"promote {by} {owner}:{seq}")
                objects[k][2] = True
            elif kind > 0.7:
                out.append(f"collect {by} {owner}:{seq}")
                del objects[k]
    if rng.random() < 0.8:
        out.append(f"at {now + rng.choice([0, 5000])}")
        out.append("end 1")
    else:
        out.append("end 0")
    return "\n".join(out) + "\n"


def check(tools, path, rng, label, n_filters=FILTERS):
    statmem, query_tool = tools
    trace = reference.Trace(statmem, path)
    if trace.contradictory:
        return 0
    filters = [("", lambda row: True)] + [reference.Filters(trace, rng).one() for _ in range(n_filters)]
    filters = [(text, trace.filtered(text, holds)) for text, holds in filters]
    names = list(trace.weights(trace.counts))
    data = b"".join(b"%d\n%s" % (len(t.encode()), t.encode()) for t, _ in filters)
    out = subprocess.run([query_tool, path, str(rng.randrange(1, 4)), str(POINTS), *names], input=data, stdout=subprocess.PIPE,
                         check=True, timeout=120).stdout.decode()
    lines = out.splitlines()
    assert len(lines) == len(filters)
    telling = 0
    for (text, holds), line in zip(filters, lines):
        answer = reference.json.loads(line)
        selected = [holds(row) for row in trace.rows]
        place = {id(row): s for row, s in zip(trace.rows, selected)}

        def is_selected(row):
            return place[id(row)]
        bits = [int(d, 16) >> k & 1 == 1 for d in answer["bits"] for k in range(4)][:len(trace.rows)]
        keep = trace.peak_place
        peak = trace.find_peak(is_selected)
        trace.peak_place = keep
        wanted = {"selected rows": (bits, selected), "count": (answer["rows"], sum(selected)), "peak": (answer["peak"], peak),
                  "peak of the curve": (answer["curve_peak"], peak), "curve": (answer["curve"], trace.curve(is_selected, POINTS)),
                  "weights": (answer["weights"], trace.weigh(is_selected))}
        for what, (is_, should_be) in wanted.items():
            if is_ != should_be:
                if isinstance(is_, dict):
                    is_, should_be = [{k: d[k] for k in is_ if is_[k] != should_be[k]} for d in (is_, should_be)]
                print(f"{label}: {text!r}: {what}\n    is        {str(is_)[:600]}\n    should be {str(should_be)[:600]}")
                return None
        telling += 0 < sum(selected) < len(selected)
    return telling


def ask(statmem, command, text, path, *options):
    out = subprocess.run([statmem, command, "--json", "--no-cache", "--filter", text, *options, path], stdout=subprocess.PIPE,
                         check=True, timeout=120).stdout
    return reference.json.loads(out)


def random_view(trace, rng):
    """Directives, and the stacks that they leave."""
    parts, hidden, collapsed = [], rng.choice(["f1", "f2", "plain", "nothing"]), rng.choice(["Main", "Stdlib", "Dune__exe.Parser", "libc.so.6"])
    hiding, collapsing = rng.random() < 0.5, rng.random() < 0.5
    if hiding:
        parts.append(f'hide ~ "{hidden}"')
    if collapsing:
        parts.append(f'collapse module "{collapsed}"')
    return parts, lambda row: trace.visible(row, lambda f: hiding and hidden in f.function,
                                            lambda f: collapsing and (f.module + ".").startswith(collapsed + "."))


def check_query(statmem, trace, path, rng, text, holds):
    """`statmem query`: groups, and that the filter which each group names selects just the group."""
    parts, shown = random_view(trace, rng)

    def place(row):
        return "@".join((shown(row) or [("(all)", "")])[-1])
    dimensions = {"domain": lambda row: f"domain {row.domain}", "heap": lambda row: row.heap,
                  "promoted": lambda row: "not promoted" if row.promote_ns == reference.NEVER else "promoted", "function": place}
    by = rng.sample(sorted(dimensions), rng.randrange(1, 4))
    weights = rng.sample(["allocated", "live@end", "live@peak", "live@own-peak", "freed", "temporary<1ms", "lifetime"], 3)
    answer = ask(statmem, "query", "; ".join(([text] if text else []) + parts), path, "--by", ",".join(by), "--weight", ",".join(weights),
                 "--top", "0")
    groups = {}
    for row in answer["rows"]:
        names = [v["name"] + "@" + v["place"]["file"] if "place" in v else v["name"] for v in row["values"]]
        groups[tuple(names)] = [[e["samples"], e["rows"]] for e in row["estimates"]]
    should_be = trace.groups(holds, [dimensions[b] for b in by], weights)
    if groups != should_be:
        return f"query --by {by} --weight {weights} {parts}", groups, should_be
    if answer["rows"] and not parts and "live@own-peak" not in weights:
        row = rng.choice(answer["rows"])
        condition = " and ".join(v["filter"] for v in row["values"])
        part = ask(statmem, "query", f"({condition}) and ({text})" if text else condition, path, "--weight", ",".join(weights))
        is_ = [[t["samples"], t["rows"]] for t in part["totals"]]
        if is_ != [[e["samples"], e["rows"]] for e in row["estimates"]]:
            return f"query: the filter {condition}", is_, row["estimates"]
    return None


def check_tree(statmem, trace, path, rng, text, holds):
    """`statmem tree`, with frames that are hidden or collapsed, and with a focus."""
    parts, shown = random_view(trace, rng)
    parts = ([text] if text else []) + parts

    def tree_of(*options):
        answer = ask(statmem, "tree", "; ".join(parts), path, "--min-share", "0", *options)
        nodes, places = answer["nodes"], [(p["name"], p["file"]) for p in answer["places"]]
        tree, at = {}, []
        for place, depth, own, total in zip(nodes["place"], nodes["depth"], nodes["own"], nodes["total"]):
            at[max(depth - 1, 0):] = [places[place]] if depth > 0 else []
            tree[tuple(at)] = [round(own / answer["unit"]), round(total / answer["unit"])]
        return tree, {key: place["id"] for key, place in zip(places, answer["places"])}

    whole, ids = tree_of()
    should_be = trace.tree(holds, shown) or {(): [0, 0]}
    if whole != should_be:
        return "tree " + "; ".join(parts), whole, should_be
    stacks = [stack for stack in map(shown, filter(holds, trace.rows)) if stack and all(key in ids for key in stack)]
    stack = rng.choice(stacks) if stacks else []
    first = rng.randrange(len(stack)) if stack else 0
    focus = stack[first:first + rng.randrange(3)]
    callers = rng.random() < 0.5
    options = (["--focus", " > ".join(ids[key] for key in focus)] if focus else []) + (["--callers"] if callers else [])
    part = tree_of(*options)[0]
    should_be = trace.tree(holds, shown, focus, callers) or {(): [0, 0]}
    return None if part == should_be else ("tree " + "; ".join(parts) + " " + " ".join(options), part, should_be)


def check_timeline(statmem, trace, path, rng, text, holds):
    answer = ask(statmem, "timeline", text, path, "--points", str(POINTS))
    unit = trace.word_bytes / trace.rate
    series = answer["series"][0]
    is_ = [[round(x / unit) for x in point] for point in zip(*(series[k] for k in ("live", "low", "high", "allocated", "freed")))]
    should_be = trace.curve(holds, POINTS)
    return None if is_ == should_be else ("timeline", is_, should_be)


def check_commands(statmem, path, rng, label):
    trace = reference.Trace(statmem, path)
    if trace.contradictory:
        return True
    for check_one in (check_query, check_tree, check_timeline):
        text, holds = reference.Filters(trace, rng).one(1) if rng.random() < 0.7 else ("", lambda row: True)
        holds = trace.filtered(text, holds)
        wrong = check_one(statmem, trace, path, rng, text, holds)
        if wrong:
            what, is_, should_be = wrong
            if isinstance(is_, dict):
                is_, should_be = [sorted(f"{k}: {v}" for k, v in d.items() if v != other.get(k))
                                  for d, other in ((is_, should_be), (should_be, is_))]
            print(f"{label}: {text!r}: {what}\n    is        {str(is_)[:600]}\n    should be {str(should_be)[:600]}")
            return False
    return True


def main():
    statmem, mktrace, make_trace, query_tool = sys.argv[1:5]
    first, seeds = (int(a) for a in (sys.argv[5:] + ["1", "24"][len(sys.argv) - 5:])[:2])
    telling = 0
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "trace")
        for seed in range(first, first + seeds):
            rng = random.Random(seed)
            with open(path + ".txt", "w", encoding="utf-8") as file:
                file.write(random_text(rng))
            if seed % 6 == 0:
                subprocess.run([make_trace, path, str(rng.randrange(1, 5)), "300", str(seed), str(seed % 2)], check=True)
            else:
                subprocess.run([mktrace, path + ".txt", path], check=True)
            found = check((statmem, query_tool), path, rng, f"seed {seed}")
            if found is None or not check_commands(statmem, path, rng, f"seed {seed}"):
                return 1
            telling += found
    corpus = os.environ.get("STATMEM_CORPUS", os.path.join(os.path.dirname(__file__), "../../../shared/corpus"))
    for name in CORPUS:
        path = os.path.join(corpus, name)
        if os.path.exists(path) and check((statmem, query_tool), path, random.Random(1), name, 6) is None:
            return 1
    print(f"{seeds} traces, {seeds * (FILTERS + 1)} filters, of which {telling} select some rows and not others")
    return 0 if telling > seeds * FILTERS // 4 else 1


if __name__ == "__main__":
    sys.exit(main())
