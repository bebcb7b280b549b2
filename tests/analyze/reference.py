"""A slow and obvious analysis of a trace, to hold the fast one against.

It sees a trace through `statmem dump --json` (events in time order) and `statmem info --json`, keeps one object for each
allocation, and answers by going through all of them. Sums are in samples. Nothing here is taken from src/analyze.
"""
import datetime
import json
import math
import subprocess

NEVER = math.inf
HEAPS = ["minor", "major", "external", "native"]
ORIGINS = ["normal", "marshal", "custom", "mapped", "reported"]


class Frame:
    made = {}

    @classmethod
    def of(cls, frame):
        key = tuple(sorted(frame.items()))
        if key not in cls.made:
            cls.made[key] = cls(frame)
        return cls.made[key]

    def __init__(self, frame):
        if "code" in frame:
            frame = {"function": f"0x{frame['code']:x}"}
        elif "cut" in frame:
            frame = {"function": "(frames cut)", "pseudo": True}
        self.function = frame.get("function") or "?"
        self.file = frame.get("file", "")
        self.line = frame.get("line", 0)
        self.module = "" if frame.get("pseudo") else self.find_module()

    def find_module(self):
        if self.file.startswith("[") and self.file.endswith("]"):
            return self.file[1:-1]
        modules, rest = [], self.function
        while "." in rest:
            first, after = rest.split(".", 1)
            if not (first[:1].isascii() and first[:1].isupper() and all(c.isascii() and (c.isalnum() or c in "_'") for c in first)):
                break
            modules.append(first)
            rest = after
        if modules:
            return ".".join(modules)
        base = self.file.split("/")[-1]
        if "." in base[1:]:
            base = base[:base.rindex(".")]
        return base[:1].upper() + base[1:]


class Row:
    """One allocation. `born`, `died`: places in the sequence of events."""

    def __init__(self, event, born, name, word_bytes):
        self.ns, self.born = event["time_ns"], born
        self.free_ns = self.promote_ns = self.died = NEVER
        self.words = event.get("words")
        self.bytes = event["bytes"] if self.words is None else self.words * word_bytes
        self.samples, self.heap, self.origin = event["samples"], event["heap"], event["origin"]
        self.domain, self.thread, self.name = event["domain"], event.get("thread", 0), name
        stack = event["stack"] or [{"function": "(no stack)", "pseudo": True}]
        if event.get("stack_lost"):
            stack = [{"function": "(stack lost)", "pseudo": True}]
        self.stack = [Frame.of(f) for f in stack]  # innermost first

    def lifetime(self):
        return self.free_ns - self.ns


class Trace:
    def __init__(self, statmem, path):
        def run(*arguments):
            return subprocess.run([statmem, *arguments, path], stdout=subprocess.PIPE, check=True, timeout=120).stdout

        info = json.loads(run("info", "--json"))
        self.word_bytes = info["header"]["word_bits"] // 8
        self.rate = info["header"]["sample_rate"]
        self.start = info["header"]["start_unix_ns"]
        self.end_ns = info["duration_ns"]
        events = [json.loads(line) for line in run("dump", "--json").splitlines()]
        names = {}
        for event in events:
            if event["event"] == "owner":
                names[event["stream"]] = event["name"]
            event["name"] = names.get(event["stream"], "")
        # One order: time, stream, place in the stream; what is told of an object before its allocation comes right after it.
        events.sort(key=lambda e: (e["time_ns"], e["stream"]))
        self.rows, self.sequence, objects, early, tellers = [], [], {}, {}, {}
        self.contradictory = False  # damage: two streams tell one object's end or promotion
        for event in events:
            kind = event["event"]
            if kind not in ("alloc", "promote", "collect"):
                continue
            key = event["object_stream"], event["object_seq"]
            if kind == "alloc":
                row = objects[key] = Row(event, len(self.sequence), event["name"], self.word_bytes)
                self.rows.append(row)
                self.sequence.append((row, True))
                for earlier in early.get(key, []):
                    self.tell(row, earlier["event"], row.ns)
                continue
            if tellers.setdefault((kind, key), event["stream"]) != event["stream"]:
                self.contradictory = True
            if key in objects:
                self.tell(objects[key], kind, event["time_ns"])
            else:
                early.setdefault(key, []).append(event)
        self.allocated_before = []  # by place: (samples, rows) of what counts without a filter
        self.peak = self.find_peak(self.counts)

    def counts(self, row):
        """Without a filter that names sources: all but the memory in which OCaml's blocks lie, where these are recorded."""
        return not (self.rate > 0 and row.heap == "native" and row.origin in ("ocaml-heap", "minor-heap"))

    def filtered(self, text, holds):
        return holds if "source" in text else lambda row: holds(row) and self.counts(row)

    def tell(self, row, kind, ns):
        if kind == "promote" and row.promote_ns == NEVER:
            row.promote_ns = ns
        if kind == "collect" and row.free_ns == NEVER:
            row.free_ns, row.died = ns, len(self.sequence)
            self.sequence.append((row, False))

    def find_peak(self, selected):
        """[units, ns, row, ends before], the place of the row; of the first moment at which most is alive."""
        live, ends, best, place, allocated = 0, 0, [0, 0, 2 ** 32 - 1, 0], -1, -1
        for row, born in self.sequence:
            allocated += born
            ends += not born
            if selected(row):
                live += row.samples if born else -row.samples
                if born and live > best[0]:
                    best, place = [live, row.ns, allocated, ends], row.born
        self.peak_place = place
        return best

    def curve(self, selected, points):
        """Of each span of time: live at its end, least and most in it, allocated and freed in it."""
        spans = [[] for _ in range(points)]
        for row, born in self.sequence:
            if selected(row):
                ns = row.ns if born else row.free_ns
                spans[ns * points // (self.end_ns + 1)].append(row.samples if born else -row.samples)
        live, result = 0, []
        for changes in spans:
            levels = [live]
            for change in changes:
                levels.append(levels[-1] + change)
            live = levels[-1]
            result.append([live, min(levels), max(levels), sum(c for c in changes if c > 0), -sum(c for c in changes if c < 0)])
        return result

    # ---- weights: name -> (what a row adds, None if it does not count) ----

    def between(self, row):
        """(samples, rows) allocated after the row and before its end."""
        if not self.allocated_before:
            samples = rows = 0
            for other, born in self.sequence:
                self.allocated_before.append((samples, rows))
                if self.counts(other):
                    samples, rows = samples + born * other.samples, rows + born
        first, last = self.allocated_before[row.born + 1], self.allocated_before[row.died]
        return last[0] - first[0], last[1] - first[1]

    def weights(self, selected):
        selected_place = -1
        place = self.peak_place
        self.find_peak(selected)
        selected_place, self.peak_place = self.peak_place, place

        def alive(at):
            return lambda r: r.samples if r.born <= at < r.died else None

        def if_(condition):
            return lambda r: r.samples if condition(r) else None

        def alive_ns(ns):
            return if_(lambda r: r.ns <= ns < r.free_ns)

        def objects(r):
            words = -(-r.bytes // self.word_bytes) + (r.words is not None)
            scale = 1 / -math.expm1(words * math.log1p(-self.rate)) if 0 < self.rate < 1 else 1
            return math.floor(scale * 1024 + 0.5)

        def lifetime(r):
            ns = self.end_ns - r.ns if r.free_ns == NEVER else r.lifetime()
            return r.samples * (max(ns, 0) // 1000)

        most = int(20000 * self.rate / self.word_bytes)
        return {
            "allocated": if_(lambda r: True),
            "live@end": if_(lambda r: r.free_ns == NEVER),
            "live@peak": alive(place),
            "live@own-peak": alive(selected_place),
            "live@2ms": alive_ns(2000000),
            "live@-1ms": alive_ns(self.end_ns - 1000000),
            "freed": if_(lambda r: r.free_ns != NEVER),
            "promoted": if_(lambda r: r.promote_ns != NEVER),
            "early": if_(lambda r: r.free_ns != NEVER and r.promote_ns == NEVER),
            "temporary<1ms": if_(lambda r: r.lifetime() <= 1000000),
            "temporary<5allocs": if_(lambda r: r.died != NEVER and self.between(r)[1] <= 5),
            "temporary<20kB": if_(lambda r: r.died != NEVER and self.between(r)[0] <= most),
            "lifetime": lifetime,
            "samples": if_(lambda r: True),
            "objects": objects,
        }

    def weigh(self, selected):
        """name -> [units, samples, rows]"""
        rows = [r for r in self.rows if selected(r)]
        result = {}
        for name, adds in self.weights(selected).items():
            taken = [(adds(r), r.samples) for r in rows if adds(r) is not None]
            result[name] = [sum(u for u, _ in taken), sum(s for _, s in taken), len(taken)]
        return result

    # ---- what commands show ----

    def visible(self, row, hidden, collapsed):
        """The stack as a view shows it, outermost first: (name, file) of functions, or (module, "") of collapsed ones."""
        keys, last = [], None
        for frame in reversed(row.stack):
            if hidden(frame):
                continue
            name = frame.module if frame.module and collapsed(frame) else None
            if name is None or name != last:
                keys.append((name, "") if name else (frame.function, frame.file))
            last = name
        return keys

    def tree(self, selected, shown, focus=(), callers=False):
        """{path: [units itself, units with callees]}; a stack counts once, at the outermost occurrence of the focus."""
        sums = {}
        for row in filter(selected, self.rows):
            stack = shown(row)
            places = [i for i in range(len(stack) - len(focus) + 1) if stack[i:i + len(focus)] == list(focus)]
            if not places:
                continue
            rest = stack[places[0] + len(focus):]
            if callers:
                rest = (stack[:places[0]] if focus else stack)[::-1]
            for n in range(len(rest) + 1):
                node = sums.setdefault(tuple(rest[:n]), [0, 0])
                node[0] += row.samples if n == len(rest) else 0
                node[1] += row.samples
        return {path: node for path, node in sums.items() if node[1] > 0}

    def groups(self, selected, keys, weights):
        """{names: [[samples, rows] by weight]}, of groups in which something counts."""
        result = {}
        adds = self.weights(selected)
        for row in filter(selected, self.rows):
            sums = result.setdefault(tuple(key(row) for key in keys), [[0, 0] for _ in weights])
            for sum_, weight in zip(sums, weights):
                if adds[weight](row) is not None:
                    sum_[0] += row.samples
                    sum_[1] += 1
        return {names: sums for names, sums in result.items() if any(rows for _, rows in sums)}


def by_value(value):
    """Key of (text, value): in a short trace different percentages are one time, yet have an order."""
    text, x = value
    return x, float(text[:-1]) if text.endswith("%") else 0


class Filters:
    """Random filters about a trace, each as a text and a function on rows."""

    def __init__(self, trace, random):
        self.t, self.random = trace, random

    def any_row(self):
        return self.random.choice(self.t.rows)

    def time(self):
        r, t = self.random, self.t
        end = t.end_ns
        row = self.any_row() if t.rows else None
        kind = r.randrange(8)
        if kind == 0:
            millionths = r.randrange(100000001)
            return f"{millionths // 1000000}.{millionths % 1000000:06}%", millionths * end // 100000000
        if kind == 1:
            ns = r.choice([0, r.randrange(end + 1)])
            return (f"end-{ns}ns" if ns else "end"), end - ns
        if kind == 2:
            ns = r.choice([0, 1000, r.randrange(1, end + 2)])
            return f"peak+{ns}ns", t.peak[1] + ns
        if kind == 3:
            ns = (row.ns if row else 0)
            at = t.start + ns
            second = datetime.datetime.fromtimestamp(at // 10**9, datetime.timezone.utc)
            if r.random() < 0.5 and second.date() == datetime.datetime.fromtimestamp(t.start // 10**9, datetime.timezone.utc).date():
                return f"@{second:%H:%M:%S}.{at % 10**9:09}", ns
            return f"@{second:%Y-%m-%dT%H:%M:%S}.{at % 10**9:09}Z", ns
        if not row:
            return "5us", 5000
        ns = r.choice([row.ns, row.free_ns, row.promote_ns])
        ns = row.ns if ns == NEVER else int(ns)
        return (f"{ns // 1000}us" if ns % 1000 == 0 else f"{ns}ns"), ns

    def number(self, unit):
        row = self.any_row() if self.t.rows else None
        if unit == "samples":
            n = row.samples if row else 1
            return str(n), n
        if unit == "lifetime":
            ns = 1000 if not row or row.free_ns == NEVER else int(row.lifetime())
            return f"{ns}ns", ns
        words = (row.bytes if row else 8) // self.t.word_bytes
        if self.random.random() < 0.5:
            return f"{words}w", words * self.t.word_bytes
        size = (row.bytes if row else 8) + self.random.randrange(2)
        return f"{size}B", size

    def test(self, word, value, get):
        """A comparison or a range."""
        r = self.random
        (a, x), (b, y) = sorted([value(), value()], key=by_value)
        form = r.randrange(9)
        ops = ["<", "<=", ">", ">=", "=", "!="]
        tests = [lambda v: v < x, lambda v: v <= x, lambda v: v > x, lambda v: v >= x, lambda v: v == x, lambda v: v != x]
        if form < 6:
            return f"{word} {ops[form]} {a}", lambda row: tests[form](get(row))
        if form == 6:
            return f"{word} in {a}..{b}", lambda row: x <= get(row) <= y
        if form == 7:
            return f"{word} {a}..", lambda row: get(row) >= x
        return f"{word} in ..{b}", lambda row: get(row) <= y

    def when(self, word, get):
        """A time at which something may never have happened: then every comparison is false, and != true."""
        text, holds = self.test(word, self.time, get)
        return text, lambda row: holds(row) if get(row) != NEVER else "!=" in text

    def live(self):
        r = self.random
        (a, x), (b, y) = sorted([self.time(), self.time()], key=by_value)
        form = r.randrange(6)
        if form == 0 or (form in (2, 5) and a == b == "peak+0ns"):
            place = self.t.peak_place
            return r.choice(["live at peak", "live in peak..peak"]), lambda row: row.born <= place < row.died
        if form == 1:
            return "live at end", lambda row: row.free_ns == NEVER
        if form == 2 and a not in ("end", "peak+0ns"):
            y = x
            text = f"live at {a}"
        elif form == 3:
            text, y = f"live in {a}..", NEVER
        elif form == 4:
            text, x = f"live in ..{b}", -NEVER
        else:
            text = f"live in {a}..{b}"
        # At the first moment of [x, y] at which it may be alive.
        return text, lambda row: max(x, row.ns) <= y and max(x, row.ns) < row.free_ns

    def pattern(self, names, equal):
        r = self.random
        name = r.choice(names)
        quoted = json.dumps(name, ensure_ascii=False)
        start, end = sorted([r.randrange(len(name) + 1), r.randrange(len(name) + 1)])
        part = name[start:end]
        form = r.randrange(5)
        if form == 0:
            return quoted, lambda s: equal(s, name)
        if form == 1:
            return f"~ {json.dumps(part, ensure_ascii=False)}", lambda s: part in s
        plain = "".join(c if c.isalnum() or c in "_ " else "?" for c in name[:start])
        if form == 2:
            return f'glob "{plain}*"', lambda s: len(s) >= start and all(p in ("?", c) for p, c in zip(plain, s))
        dots = plain.replace("?", ".")
        if form == 3:
            return f"/^{dots}/", lambda s: len(s) >= start and all(p in (".", c) for p, c in zip(dots, s))
        return f"!= {quoted}", lambda s: None if equal(s, name) else False

    def frames(self):
        r = self.random
        subject = r.choice(["function", "file", "module", "line"])
        frames = [f for row in self.t.rows for f in row.stack] or [Frame({"function": "f"})]
        if subject == "line":
            def text(f):
                return f"{f.file}:{f.line}" if f.line else None
        else:
            def text(f):
                return getattr(f, subject)

        def equal(s, name):
            if s == name or name == "":
                return s == name
            return (subject in ("file", "line") and s.endswith("/" + name)) or (subject == "module" and s.startswith(name + "."))
        choices = sorted({text(f) for f in frames} - {None, ""}) or ["x"]
        if subject in ("file", "module"):
            choices.append(r.choice(choices).split("/")[-1].split(".")[0])
        pattern, holds = self.pattern(choices, equal)
        negated = pattern.startswith("!=")

        def frame_holds(f):
            s = text(f)
            if s is None:
                return False
            return holds(s) is None if negated else holds(s)
        if r.random() < 0.5:
            return f"inside {subject} {pattern}", lambda row: any(map(frame_holds, row.stack)) != negated
        return f"site {subject} {pattern}", lambda row: frame_holds(row.stack[0]) != negated

    def lanes(self):
        r = self.random
        rows = self.t.rows
        form = r.randrange(5)
        if form == 0:
            names = r.sample(HEAPS + ORIGINS, r.randrange(1, 4))
            return f"source in {','.join(names)}", lambda row: row.heap in names or row.origin in names
        domain = self.any_row().domain if rows else 0
        if form == 1:
            numbers = [domain, r.randrange(4)]
            return f"domain in {numbers[0]},{numbers[1]}", lambda row: row.domain in numbers
        if form == 2:
            return self.test("domain", lambda: (str(domain), domain), lambda row: row.domain)
        if form == 3:
            tid = self.any_row().thread if rows else 7
            return f"thread {tid}", lambda row: row.thread == tid and tid != 0
        names = sorted({row.name for row in rows} - {""}) or ["x"]
        pattern, holds = self.pattern(names, lambda s, name: s == name)
        if pattern.startswith("!="):
            return f"thread {pattern}", lambda row: holds(row.name) is not None
        return f"thread {pattern}", lambda row: holds(row.name)

    def one(self, depth=3):
        r = self.random
        kind = r.randrange(12) if depth > 0 else 3 + r.randrange(9)
        if kind < 2:
            parts = [self.one(depth - 1) for _ in range(r.randrange(2, 4))]
            join, all_or_any = r.choice([(" and ", all), (" or ", any)])
            return "(" + join.join(p[0] for p in parts) + ")", lambda row: all_or_any(p[1](row) for p in parts)
        if kind == 2:
            text, holds = self.one(depth - 1)
            return "not " + text, lambda row: not holds(row)
        return [
            lambda: self.test("allocated", self.time, lambda row: row.ns),
            lambda: self.when("promoted", lambda row: row.promote_ns),
            lambda: self.when("collected", lambda row: row.free_ns),
            self.live,
            lambda: r.choice([("promoted", lambda row: row.promote_ns != NEVER), ("freed never", lambda row: row.free_ns == NEVER)]),
            lambda: self.test("size", lambda: self.number("size"), lambda row: row.bytes),
            lambda: self.test("lifetime", lambda: self.number("lifetime"), lambda row: row.lifetime()),
            lambda: r.choice([self.lanes, lambda: self.test("samples", lambda: self.number("samples"), lambda row: row.samples)])(),
            self.frames,
        ][kind - 3]()
