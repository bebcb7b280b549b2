#!/usr/bin/env python3
"""The parser against the shared cases: check_cases.py TOOL CASES

Each case in CASES is a text with its canonical form, or with the column and the expectation of its error ("regex": true marks
errors that only a parser of regular expressions can see). Canonical forms are parsed again and must stay. Further
cases, too long to list, are made here.
"""
import json
import subprocess
import sys


def answers(tool, texts):
    data = b"".join(b"%d\n%s" % (len(t), t) for t in texts)
    out = subprocess.run([tool], input=data, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    lines = out.split(b"\n")
    assert lines.pop() == b"" and len(lines) == len(texts), "one line for each text"
    return lines


def long_cases():
    def ok(text, canonical):
        return {"text": text, "canonical": canonical}

    def bad(text, column, expected):
        return {"text": text, "error_column": column, "expected": expected}

    yield ok(" ".join(["promoted"] * 1000), " and ".join(["promoted"] * 1000))
    yield bad(" ".join(["promoted"] * 1001), 9001, "at most 1000 conditions")
    yield bad(" ".join(["hide x"] * 1001), 7001, "at most 1000 conditions")
    numbers = [str(i) for i in range(1001)]
    yield ok("domain in " + ",".join(reversed(numbers[:1000])), "domain in " + ",".join(numbers[:1000]))
    yield bad("domain in " + ",".join(numbers), 3905, "at most 1000 numbers")
    yield ok("domain in " + ",".join(["2", "1"] * 16000), "domain in 1,2")
    name = "x" * 65526
    yield ok('inside "' + name + '"', 'inside "' + name + '"')
    yield bad('inside "' + name + 'xx"', 1, "at most 65536 bytes")
    yield bad("inside " + name + "xxx", 1, "at most 65536 bytes")  # canonical: in quotes
    yield bad("(" * 65536, 65, "at most 64 levels of () and not")
    yield bad("not " * 16384, 257, "at most 64 levels of () and not")
    yield ok(";" * 65536, "")
    yield ok(" " * 65536, "")
    yield ok("inside " + "'" + "\\'" * 30000 + "'", 'inside "' + "'" * 30000 + '"')
    yield bad("promoted " + '"" ' * 20000, 10, "and, or, ; or another condition")
    yield bad("inside /" + "a" * 1001 + "/", 8, "a regular expression of the POSIX extended kind")


def main():
    tool, path = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        cases = json.load(file)
    assert len(cases) > 300, "the list of cases is cut"
    cases += list(long_cases())
    failures = 0
    lines = answers(tool, [c["text"].encode() for c in cases])
    again = answers(tool, [c.get("canonical", "").encode() for c in cases])
    for case, line, second in zip(cases, lines, again):
        shown = line.decode()
        if "canonical" in case:
            good = shown == "+" + case["canonical"] and line == second
        else:
            column, expected, message = (shown[1:].split("\t") + ["", ""])[:3]
            good = (shown.startswith("-") and column == str(case["error_column"]) and expected == case["expected"]
                    and message.startswith(f"column {column}: expected {expected}"))
        if not good:
            failures += 1
            print(f"{case['text'][:200]!r}\n    answer {shown[:300]}\n    again  {second.decode()[:300]}\n    case   {str(case)[:400]}")
    # Bytes that JSON cannot hold.
    raw = [b"inside \xff", b'inside "a\xc3"', b"inside /\xff/", b"\xff", b"inside \xc3\xa9\xe9 x", b"inside \"\x00\"", b"promoted\x00"]
    wanted = [b'+inside "\\xff"', b'+inside "a\\xc3"', b"-9\tprintable text; ", b"-1\ta condition", b"-11\tand, or",
              b"-9\tprintable text", b"-9\tand, or"]
    for text, line, start in zip(raw, answers(tool, raw), wanted):
        if not line.startswith(start):
            failures += 1
            print(f"{text!r}: {line!r}")
    print(f"{len(cases) + len(raw)} cases, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
