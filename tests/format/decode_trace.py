#!/usr/bin/env python3
"""A second decoder of statmem traces, written from docs/format.md alone.

It is small and slow, and shares nothing with the C reader; tests compare the two on every trace they make.

    decode_trace.py [--summary] [--no-tail] [--part N] TRACE

prints one line per fact (M meta, E end, S location, then the events stream by stream) or, with
--summary, one JSON object with figures and problems. Exit status 1 when a packet of a sound trace
breaks a rule of the format (checksums, INDEX, counts, ranges), 2 when TRACE cannot be read at all.
"""
import json
import os
import re
import struct
import sys

MAGIC = b"\x8bSTM1\r\x1a\n"
OFFSET = re.compile(rb"\+0x[0-9a-f]{1,16}(?: .*)?", re.S)
UNNAMED = set()  # codes whose record is an offset so far
TAIL_MAGIC = b"\x8bSTMTL1\n"
HEADER = struct.Struct("<8sIIIIBBHIIIQQQIIQIIQ")
META, EVENTS, SYMS, INDEX, END, HEARTBEAT = range(6)
MAX_RAW, MAX_STREAMS, MAX_SEQ, MAX_FRAMES, MAX_DEPTH = 64 << 20, 1 << 18, 1 << 36, 1 << 26, 32768
M64 = (1 << 64) - 1


class Bad(Exception):
    pass


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
        table.append(i)
    return table


CRC = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = CRC[(crc ^ b) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Reader:
    """A cursor over bytes; running out raises Bad."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def more(self):
        return self.at < self.end

    def take(self, n):
        if n > self.end - self.at:
            raise Bad("runs over the end")
        self.at += n
        return self.data[self.at - n:self.at]

    def u8(self):
        return self.take(1)[0]

    def leb(self):
        x = shift = 0
        while True:
            b = self.u8()
            x |= (b & 127) << shift
            shift += 7
            if b < 128:
                if x > M64:
                    raise Bad("number beyond 64 bits")
                return x
            if shift >= 70:
                raise Bad("number of more than 10 bytes")

    def zz(self):
        z = self.leb()
        return z >> 1 ^ -(z & 1)

    def tlvs(self):
        """The whole entries; a cut list ends earlier."""
        try:
            while self.more():
                tag = self.leb()
                yield tag, self.take(self.leb())
        except Bad:
            pass


def leb_of(data):
    return Reader(data).leb()


def text(data):
    """Printable and unambiguous: bytes that are not plain become %XX."""
    return "".join(chr(b) if 33 <= b < 127 and b != 37 else "%%%02X" % b for b in data)


class Packet:
    def __init__(self, data, at):
        (magic, self.header_crc, self.payload_crc, self.stored, self.raw, self.codec, self.kind, self.flags,
         self.stream, self.seq, self.pid, self.first_seq, self.ts_begin, self.ts_span, self.n_events,
         self.n_alloc, self.discarded, self.max_depth, self.n_cut, self.session) = HEADER.unpack_from(data, at)
        self.at, self.tail, self.cut, self.damaged = at, False, False, False
        self.ok = (magic == MAGIC and crc32c(data[at + 12:at + 96]) == self.header_crc and self.raw <= MAX_RAW
                   and (self.codec != 0 or self.raw == self.stored) and self.stream < MAX_STREAMS
                   and self.first_seq < MAX_SEQ)
        self.payload = data[at + 96:at + 96 + self.stored]

    def unpack(self):
        if not self.tail and not self.cut and crc32c(self.payload) != self.payload_crc:
            raise Bad("checksum")
        if self.codec == 0:
            return self.payload
        if self.codec != 1:
            raise Bad("unknown codec")
        if self.cut:
            raise Bad("cut and compressed")
        try:
            import zstandard
        except ImportError:
            sys.exit("decode_trace.py: compressed packets need the Python module zstandard")
        try:
            raw = zstandard.ZstdDecompressor().decompress(self.payload, max_output_size=self.raw)
        except zstandard.ZstdError as e:
            raise Bad("zstd: %s" % e)
        if len(raw) != self.raw:
            raise Bad("raw_bytes")
        return raw


def header_at(data, at):
    if at + 96 > len(data) or data[at:at + 8] != MAGIC:
        return None
    p = Packet(data, at)
    return p if p.ok else None


def find_header(data, at, end):
    while True:
        at = data.find(MAGIC, at, end + 7)
        if at < 0:
            return end
        if header_at(data, at):
            return at
        at += 1


def walk(data, problem):
    """Section 9, rules 1 to 3: the packets of the file, in its order."""
    at = 0
    while at < len(data):
        p = header_at(data, at)
        if p is None:
            after = find_header(data, at + 1, len(data))
            problem("garbage", at, "%d bytes belong to no packet" % (after - at))
            at = after
            continue
        end = at + 96 + p.stored
        if end != len(data) and (end > len(data) or header_at(data, end) is None):
            inside = find_header(data, at + 96, min(end, len(data)))
            if inside < min(end, len(data)):
                p.damaged, end = True, inside
            elif end > len(data):
                p.cut, end = True, len(data)
            if p.cut or p.damaged:
                problem("cut" if p.cut else "corrupt", at, "packet is not whole")
        yield p
        at = end


class Stack:
    """Sections 5.2 and 5.3."""

    def __init__(self):
        self.frames, self.codes, self.next, self.last_code, self.budget = [], [None], [[]], 0, MAX_FRAMES

    def explicit(self, index):
        if not 0 < index < len(self.codes):
            raise Bad("location index %d" % index)
        context = self.next[self.frames[-1] if self.frames else 0]
        if index in context:
            context.remove(index)
        context.insert(0, index)
        del context[4:]
        self.frames.append(index)

    def read(self, r):
        pops = r.leb()
        codes = Reader(r.take(r.leb()))
        if pops > len(self.frames):
            raise Bad("pops")
        if pops:
            del self.frames[-pops:]
        kept = len(self.frames)
        while codes.more():
            b = codes.u8()
            tag = b & 3
            if b < 0xE0:
                v = b << 8 | codes.u8()
                tag, index = v & 3, v >> 2
            elif b < 0xF0:
                successors = self.next[self.frames[-1] if self.frames else 0]
                if (b >> 2 & 3) >= len(successors):
                    raise Bad("rank")
                index = successors[b >> 2 & 3]
            elif 0xF0 <= b < 0xF3:
                index = codes.leb()
            elif 0xF4 <= b < 0xF7:
                self.last_code = (self.last_code + codes.zz()) & M64
                self.codes.append(self.last_code)
                self.next.append([])
                index = len(self.codes) - 1
                if index > 65535:
                    raise Bad("too many locations")
            else:
                raise Bad("reserved code %02X" % b)
            if tag == 3:
                raise Bad("reserved tag")
            predicted = codes.u8() if tag == 2 else tag
            self.explicit(index)
            for _ in range(predicted):
                if not self.next[self.frames[-1]]:
                    raise Bad("nothing to predict")
                self.frames.append(self.next[self.frames[-1]][0])
        self.budget -= len(self.frames) - kept
        if len(self.frames) > MAX_DEPTH or self.budget < 0:
            raise Bad("too many frames")
        return [self.codes[i] for i in self.frames]


def owner_of(data):
    tlv = dict(Reader(data).tlvs())
    def get(tag):
        return leb_of(tlv[tag]) if tag in tlv else 0
    return "%d/%d/%d/%d/%s" % (get(1), get(2), get(4), get(5), text(tlv.get(3, b"")[:255]))


NOBODY = "0/0/0/0/"


def events(p, raw, owner, out):
    """Section 5: appends (time, line) of each event; returns what was met. Raises Bad with .args[1] = the same."""
    r, time, seq, stack, refs = Reader(raw), p.ts_begin, p.first_seq, Stack(), {p.stream: p.first_seq - 1}
    met = {"n_events": 0, "n_alloc": 0, "max_depth": 0, "n_cut": 0, "owner": owner, "time": time}
    try:
        while r.more():
            op = r.u8()
            time = time + r.leb()
            if time > M64:
                raise Bad("time")
            if 1 <= op <= 16 or op in (64, 65):
                size, samples, source = (op, 1, 0) if op <= 16 else (r.leb(), r.leb(), r.u8())
                if size >> 62 or samples >> 62:
                    raise Bad("size")
                codes = stack.read(r)
                out.append((time, p.stream, "A %d %d \0 %d%s %d %d %d %s %s" % (
                    p.stream, seq, size, "b" if op == 65 else "w", samples, source & 7, source >> 3 & 15,
                    met["owner"], ",".join("%x" % c for c in codes))))
                seq += 1
                met["n_alloc"] += 1
                met["max_depth"] = max(met["max_depth"], len(codes))
                met["n_cut"] += 0 in codes
            elif 200 <= op <= 203:
                stream = r.leb() if op >= 202 else p.stream
                if stream >= MAX_STREAMS:
                    raise Bad("stream")
                refs[stream] = (refs.get(stream, -1) + 1 + r.zz()) & M64
                out.append((time, p.stream, "%s %d %d:%d \0 %s" % (
                    "PC"[op & 1], p.stream, stream, refs[stream], met["owner"])))
            elif op >= 224:
                payload = r.take(r.leb())
                if op == 224:
                    met["owner"] = owner_of(payload)
                out.append((time, p.stream, "X %d %d \0 %s %s" % (p.stream, op, met["owner"], payload.hex())))
            else:
                raise Bad("unknown op %d" % op)
            met["n_events"] += 1
            met["time"] = time
    except Bad as e:
        raise Bad(e.args[0], met)
    return met


def symbols(raw, found, problem, p):
    """Section 6: the first announcement of a code counts, but a name counts in place of an offset."""
    r, code, strings = Reader(raw), 0, []

    def string():
        k = r.leb()
        if k == 0:
            strings.append(r.take(r.leb()))
            return strings[-1]
        if k > len(strings):
            raise Bad("string number")
        return strings[k - 1]
    records = 0
    while r.more():
        code = (code + r.zz()) & M64
        locations, n = [], r.leb()
        for _ in range(n):
            file, function, line = string(), string(), r.leb()
            end_line = line + r.zz()
            locations.append("%s|%s|%d|%d|%d|%d|%d" % (text(file), text(function), line, end_line, r.leb(),
                                                       r.leb(), r.u8()))
        offset = (n == 1 and int(locations[0].rsplit("|", 1)[1]) & 16 != 0 and b":" in file
                  and OFFSET.fullmatch(function) is not None)
        if code in found and (code in UNNAMED) != offset:
            if not offset:
                found[code] = locations
                UNNAMED.discard(code)
            records += 1
            continue
        if offset:
            UNNAMED.add(code)
        if found.setdefault(code, locations) != locations:
            problem("names", p.at, "code %x announced with different contents" % code)
        records += 1
    return records


def side_file(path, session, packets, problem):
    """Section 8: what the trace does not have yet."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError:
        return False
    if len(data) < 64 or data[:8] != TAIL_MAGIC:
        return False
    version, n_slots, tail_session, _, slot_bytes, syms_at, events_at = struct.unpack_from("<IIQIIII", data, 8)
    if version != 1 or tail_session != session:
        return False
    have = {(p.kind, p.stream, p.seq): p for p in packets if not p.cut and not p.damaged
            and crc32c(p.payload) == p.payload_crc}
    used = False
    for i in range(n_slots):
        slot = 4096 + i * slot_bytes
        for kind, header, counter, payload in (EVENTS, 0, 96, events_at), (SYMS, 128, 224, syms_at):
            if slot + payload > len(data):
                continue
            committed = struct.unpack_from("<Q", data, slot + counter)[0]
            if committed == 0 or data[slot + header:slot + header + 8] != MAGIC:
                continue
            p = Packet(data, slot + header)
            p.kind, p.tail, p.codec = kind, True, 0
            p.payload = data[slot + payload:slot + payload + committed]
            if p.session == session and (kind, p.stream, p.seq) not in have:
                packets[:] = [q for q in packets if (q.kind, q.stream, q.seq) != (kind, p.stream, p.seq)]
                packets.append(p)
                used = True
    return used


META_NAMES = {7: "executable", 8: "host", 9: "runtime_params", 11: "context", 12: "args", 13: "ocaml_version",
              15: "writer", 16: "arch", 23: "boot_id"}
META_NUMBERS = {2: "tick_ns", 3: "clock", 6: "word_size", 10: "pid", 17: "depth_limit", 18: "rate_origin",
                19: "initial_domain", 21: "imported_from", 24: "mode", 25: "ocaml_kind", 26: "parent_pid",
                27: "native_interval"}


def meta_lines(p, raw):
    found = {"tick_ns": "1000", "word_size": "64", "clock": "1", "pid": "%d" % p.pid}
    for tag, value in Reader(raw).tlvs():
        if tag in META_NAMES:
            found[META_NAMES[tag]] = text(value)
        elif tag in META_NUMBERS:
            found[META_NUMBERS[tag]] = "%d" % leb_of(value)
        elif tag == 5:
            found["sample_rate"] = "%.17g" % struct.unpack("<d", value)[0]
        elif tag == 14:
            found["build_id"] = value.hex()
        elif tag == 4:
            found["anchor"] = "%d %d" % struct.unpack("<QQ", value)
        elif tag == 20:
            found["seed"] = "%d" % struct.unpack("<Q", value)[0]
    found["start"] = "%d" % p.ts_begin
    found["session"] = "%x" % p.session
    return ["M %s %s" % kv for kv in sorted(found.items()) if kv[1] not in ("", "0")]


END_NUMBERS = {1: "reason", 2: "n_events", 3: "discarded", 4: "forks", 5: "peak_streams", 6: "owners",
               7: "recovered", 8: "exit_status",
               10: "lost_events", 11: "lost_bytes", 12: "lost_names"}


def end_lines(p, raw):
    if raw[-4:] != b"STME":
        raise Bad("END has no trailer")
    found = {"ticks": p.ts_begin}
    for tag, value in Reader(raw[:-16]).tlvs():
        if tag in END_NUMBERS:
            found[END_NUMBERS[tag]] = leb_of(value)
        elif tag == 9:
            r = Reader(value)
            while r.more():
                counter = r.leb()
                found["gc%d" % counter] = r.zz()
    return ["E %s %d" % kv for kv in sorted(found.items()) if kv[1] != 0]


def check_index(raw, p, before, problem, all_packets):
    """Section 7: INDEX lists the packets before it as they stand there."""
    r, end, ts = Reader(raw), 0, 0
    for q in before:
        entry = [r.leb() + end, r.u8(), r.leb(), r.leb(), r.leb(), r.leb(), r.leb(), (ts + r.zz()) & M64, r.leb()]
        want = [q.at, q.kind, q.stored, q.stream, q.seq, q.n_events, q.n_alloc, q.ts_begin, q.ts_span]
        if entry != want:
            problem("index", p.at, "entry %s, packet %s" % (entry, want))
            return
        end, ts = q.at + 96 + q.stored, q.ts_begin
    if r.more():
        problem("index", p.at, "lists more packets than there are")


def check_trailer(raw, p, data, problem):
    offset, length = struct.unpack("<QI", raw[-16:-4])
    if length != 96 + p.stored or p.codec != 0:
        problem("end", p.at, "trailer gives a wrong length")
    if offset and (header_at(data, offset) is None or header_at(data, offset).kind != INDEX):
        problem("end", p.at, "no INDEX where the trailer says")


def decode(path, part, use_tail):
    with (sys.stdin.buffer if path == "-" else open(path, "rb")) as f:
        data = f.read()
    problems, lines = [], []

    def problem(kind, offset, what):
        problems.append({"kind": kind, "offset": offset, "what": what})
    file_packets = list(walk(data, problem))
    sessions = []
    for p in file_packets:
        if (p.kind == META or not sessions) and p.session not in sessions:
            sessions.append(p.session)
    if part >= len(sessions):
        print("%s: no such trace" % path, file=sys.stderr)
        sys.exit(2)
    session = sessions[part]
    pids = [p.pid for p in file_packets if p.kind == META and p.session == session][:1]
    packets = [p for p in file_packets if p.session == session
               and not (p.kind == EVENTS and pids and p.pid != pids[0])]
    if len(packets) < len(file_packets):
        problem("foreign", 0, "%d packets of others" % (len(file_packets) - len(packets)))
    mine = list(packets)
    used_tail = use_tail and path != "-" and side_file(path + ".tail", session, packets, problem)
    seen, unpacked = set(), []
    for p in sorted(packets, key=lambda p: p.cut or p.damaged):
        key = (p.kind, p.stream, p.seq)
        if key in seen and p.kind in (EVENTS, SYMS):
            problem("copy", p.at, "packet %s again" % (key,))
            continue
        try:
            if p.damaged:
                raise Bad("damaged")
            raw = p.unpack()
        except Bad as e:
            problem("corrupt", p.at, "kind %d: %s" % (p.kind, e.args[0]))
            raw = None
        seen.add(key)
        unpacked.append((p, raw))
    unpacked.sort(key=lambda pr: (pr[0].tail, pr[0].at))
    names, out, totals, owner, clock = {}, [], {"events": 0, "alloc": 0, "discarded": 0}, {}, {}
    first_meta, last_end = True, []
    for p, raw in unpacked:
        if raw is None:
            continue
        try:
            if p.kind == META and first_meta:
                lines += meta_lines(p, raw)
                first_meta = False
            elif p.kind == SYMS:
                n = symbols(raw, names, problem, p)
                if n != p.n_events and not p.tail:
                    problem("count", p.at, "%d records, header says %d" % (n, p.n_events))
            elif p.kind == INDEX and not any(q["kind"] in ("garbage", "corrupt", "foreign") for q in problems):
                check_index(raw, p, [q for q in mine if q.at < p.at], problem, mine)
            elif p.kind == END:
                last_end = end_lines(p, raw)
                check_trailer(raw, p, data, problem)
        except (Bad, struct.error) as e:
            problem("cut" if p.cut else "corrupt", p.at, "kind %d: %s" % (p.kind, e.args[0]))
    lines += last_end
    lines += [" ".join(["S %x" % code] + names[code]) for code in sorted(names)]
    expected = {}
    for p, raw in sorted(unpacked, key=lambda pr: (pr[0].stream, pr[0].seq)):
        if p.kind != EVENTS:
            continue
        packet_seq, first_seq = expected.get(p.stream, (0, 0))
        if p.seq != packet_seq or p.first_seq < first_seq:
            problem("gap", p.at, "stream %d: packet %d, %d expected" % (p.stream, p.seq, packet_seq))
        expected[p.stream] = (p.seq + 1, p.first_seq + p.n_alloc)
        if raw is None:
            continue
        try:
            error = None
            met = events(p, raw, owner.get(p.stream, NOBODY), out)
        except Bad as e:
            error, met = e.args
            problem("cut" if p.cut else "corrupt", p.at, error)
        owner[p.stream] = met["owner"]
        totals["events"] += met["n_events"]
        totals["alloc"] += met["n_alloc"]
        floor, begin = clock.get(p.stream, 0), len(out) - met["n_events"]
        out[begin:] = [(max(floor, time), stream, line) for time, stream, line in out[begin:]]
        if p.ts_begin < floor:
            problem("time", p.at, "begins before its predecessor ends")
        clock[p.stream] = max(floor, met["time"])
        if not (p.tail or p.cut or error) and (
                [met[k] for k in ("n_events", "n_alloc", "max_depth", "n_cut")]
                != [p.n_events, p.n_alloc, p.max_depth, p.n_cut] or met["time"] != p.ts_begin + p.ts_span):
            problem("count", p.at, "header and contents disagree: %s" % met)
    lines += [line.replace("\0", str(time)) for time, _, line in out]
    discarded = {}
    for p in packets:
        if p.kind == EVENTS and not p.tail:
            discarded[p.stream] = max(discarded.get(p.stream, 0), p.discarded)
    summary = {"packets": len(file_packets), "parts": len(sessions), "streams": len(expected),
               "events": totals["events"], "allocations": totals["alloc"], "locations": len(names),
               "discarded": sum(discarded.values()), "tail": bool(used_tail), "closed": bool(last_end),
               "raw_bytes": sum(p.raw for p in packets if p.kind == EVENTS), "problems": problems}
    return lines, summary


def main():
    args = sys.argv[1:]
    part = 0
    if "--part" in args:
        at = args.index("--part")
        part = int(args[at + 1])
        del args[at:at + 2]
    paths = [a for a in args if not a.startswith("--")]
    if len(paths) != 1:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    lines, summary = decode(paths[0], part, "--no-tail" not in args)
    if "--summary" in args:
        print(json.dumps(summary, indent=1))
    else:
        sys.stdout.write("".join(line + "\n" for line in lines))
    sys.exit(1 if any(p["kind"] not in ("foreign",) for p in summary["problems"]) else 0)


if __name__ == "__main__":
    main()
