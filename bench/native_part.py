"""The part `native` of bench/run: recording malloc, beside other tools of the distribution where they are installed
(heaptrack, libjemalloc2, libgoogle-perftools4). All in one run, as ratios."""
import contextlib
import glob
import os
import resource
import shutil
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def build(bench, name, *flags):
    target = os.path.join(bench.work, name + (".so" if "-shared" in flags else ""))
    source = os.path.join(ROOT, "bench/programs", name + ".c")
    subprocess.run(["cc", "-O2", "-g", "-fno-builtin", source, "-o", target, "-pthread", "-ldl", *flags], check=True)
    return target


def library(name):
    found = sorted(glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib/" + name))
    return found[0] if found else None


def run(command, cwd, **environment):
    """(output, processor time in ns of the command and all it starts)"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, cwd=cwd,
                          env=dict(os.environ, **environment))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e9


def record(bench, interval, command, trace="native.stm"):
    return [bench.statmem, "record", "-q", "--native-only", "--no-compress", "--native-interval", interval, "-o",
            os.path.join(bench.work, trace), "--", *command]


def pairs(bench):
    bench.say("malloc and free of 64 bytes, ns of processor time for a pair (best of five; medians of runs)")
    program, through = build(bench, "pairs"), build(bench, "passthrough", "-shared", "-fPIC")
    n = "2000000" if bench.quick else "20000000"
    ways = {
        "libc": ([program, "0", n], {}),
        "functions that only go on": ([program, "0", n], {"LD_PRELOAD": through}),
        "record, 512 KiB": (record(bench, "512k", [program, "0", n]), {}),
        "record, 4 KiB": (record(bench, "4k", [program, "0", n]), {}),
    }
    cells = {way: [] for way in ways}
    for _ in range(bench.repeats):
        for way, (command, environment) in ways.items():
            cells[way].append(float(run(command, bench.work, **environment)[0]))
    base = statistics.median(cells["functions that only go on"])
    for way, values in cells.items():
        more = statistics.median(v - b for v, b in zip(values, cells["functions that only go on"]))
        bench.keep("native/pair/" + way, statistics.median(values))
        bench.row(way, f"{statistics.median(values):.2f}", f"{more:+.2f}", widths=(34, 10, 10))
    bench.row("aim over going on", "", "<= 1", widths=(34, 10, 10))
    return base


def samples(bench):
    bench.say("Cost of an event when every allocation is recorded, ns (birth and death are two)")
    program, n = build(bench, "pairs"), 200000 if bench.quick else 1000000
    bench.row("stack depth", "0", "20", "100")
    row = []
    for depth in ("0", "20", "100"):
        values = []
        for _ in range(bench.repeats):
            plain = float(run([program, depth, str(n)], bench.work)[0])
            values.append((float(run(record(bench, "1", [program, depth, str(n)]), bench.work)[0]) - plain) / 2)
        row.append(statistics.median(values))
        bench.keep("native/sample/" + depth, row[-1])
    bench.row("ns an event", *(f"{v:.0f}" for v in row))
    bench.row("aim", "", "<= 300", "")
    size = os.path.getsize(os.path.join(bench.work, "native.stm"))
    bench.row("bytes an event, depth 100", f"{bench.keep('native/bytes', size / (2 * n)):.1f}")


def tools(bench):
    bench.say("A program of two threads that allocates all the time: processor time against the plain program")
    program, n = build(bench, "churn"), "1000000" if bench.quick else "4000000"
    jemalloc, tcmalloc = library("libjemalloc.so.2"), library("libtcmalloc.so.4")
    heap = os.path.join(bench.work, "heap")
    plain = ([program, n], {})
    ways = {}
    for interval in ("512k", "4k", "1"):
        ways["statmem record, " + {"512k": "512 KiB", "4k": "4 KiB", "1": "every allocation"}[interval]] = (
            record(bench, interval, [program, n]), {}, plain)
    if shutil.which("heaptrack"):
        ways["heaptrack, every allocation"] = (["heaptrack", program, n], {}, plain)
    if jemalloc:
        own = ([program, n], {"LD_PRELOAD": jemalloc})
        for bits, name in ((19, "512 KiB"), (12, "4 KiB"), (0, "every allocation")):
            options = f"prof:true,prof_active:true,prof_prefix:{heap},lg_prof_sample:{bits}"
            ways["jemalloc, " + name] = ([program, n], {"LD_PRELOAD": jemalloc, "MALLOC_CONF": options}, own)
    if tcmalloc:
        own = ([program, n], {"LD_PRELOAD": tcmalloc})
        for interval, name in ((524288, "512 KiB"), (4096, "4 KiB")):
            ways["gperftools, sampled, " + name] = (
                [program, n], {"LD_PRELOAD": tcmalloc, "TCMALLOC_SAMPLE_PARAMETER": str(interval)}, own)
        ways["gperftools, heap profile"] = ([program, n], {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": heap}, own)
    for way, (command, environment, without) in ways.items():
        ratios = []
        slow = "every" in way or "heap profile" in way
        for _ in range(1 if slow and not way.startswith("statmem") else bench.repeats):
            base = run(without[0], bench.work, **without[1])[1]
            ratios.append(run(command, bench.work, **environment)[1] / base)
        aim = {"statmem record, 512 KiB": "aim <= 1.01", "statmem record, 4 KiB": "aim <= 1.10"}.get(way, "")
        bench.row(way, f"{bench.keep('native/ratio/' + way, statistics.median(ratios)):.2f}", "  " + aim,
                  widths=(34, 10, 16))
    if not (jemalloc and tcmalloc and shutil.which("heaptrack")):
        print("(libjemalloc2, libgoogle-perftools4, heaptrack: what is not installed is missing here)")
    for left in glob.glob(heap + "*") + glob.glob(os.path.join(bench.work, "heaptrack.*")):
        with contextlib.suppress(OSError):  # heaptrack's helpers may still be at work
            os.remove(left)


def native(bench):
    pairs(bench)
    samples(bench)
    tools(bench)
