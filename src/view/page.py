#!/usr/bin/env python3
"""Writes the page's files as a C table: page.py OUTPUT DIRECTORY [--stamp FILE].

DIRECTORY is what the page's build made (viewer/dist); where there is none, a page that says so takes its place."""
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".json": "application/json",
         ".woff2": "font/woff2", ".txt": "text/plain; charset=utf-8", ".map": "application/json"}

MISSING = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>statmem</title>
<h1>The page was not built</h1>
<p>This statmem was built without npm. Its data is at <a href="/api/v1/traces">/api/v1/traces</a>; build with npm for the page.</p>
</html>
"""


def files(directory):
    found = []
    for folder, _, names in os.walk(directory):
        for name in sorted(names):
            path = os.path.join(folder, name)
            extension = os.path.splitext(name)[1]
            if extension in TYPES and extension != ".map":
                with open(path, "rb") as f:
                    found.append(("/" + os.path.relpath(path, directory), TYPES[extension], f.read()))
    return sorted(found)


def main():
    output, directory = sys.argv[1:3]
    found = files(directory)
    if not any(path == "/index.html" for path, _, _ in found):
        found = [("/index.html", TYPES[".html"], MISSING)]
    with open(output, "w", encoding="ascii") as f:
        f.write("/* Made by view/page.py. */\n#include \"view/server.h\"\n")
        for i, (_, _, data) in enumerate(found):
            f.write(f"static const unsigned char file_{i}[] = {{\n")
            for at in range(0, len(data), 64):
                f.write(",".join(str(byte) for byte in data[at:at + 64]) + ",\n")
            f.write("};\n")
        f.write("const struct sm_page_file sm_page_files[] = {\n")
        for i, (path, kind, data) in enumerate(found):
            f.write(f'    {{"{path}", "{kind}", file_{i}, {len(data)}}},\n')
        f.write(f"}};\nconst unsigned sm_n_page_files = {len(found)};\n")


main()
