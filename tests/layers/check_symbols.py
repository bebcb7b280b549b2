#!/usr/bin/env python3
"""Compares the symbols of a library with a list.

    check_symbols.py undefined ARCHIVE LIST    what hook-safe code needs from outside: only what LIST allows
    check_symbols.py exported  LIBRARY LIST [MAP]
                                               what a shared library shows: exactly LIST, and (for a linker map)
                                               nothing that MAP does not name

LIST has one symbol (or pattern with *) a line, followed by the reason why it may be there; lines from # on are
comments. A symbol of FORBIDDEN is never allowed, whatever the list says. Built with sanitizers there are other
symbols: those of the compiler's runtime (__asan_*, __ubsan_*, __tsan_*) are passed over.
"""
import fnmatch
import re
import subprocess
import sys

# Calls that may allocate, block, print or end the program: the rules of hook-safe code.
FORBIDDEN = {
    "malloc", "calloc", "realloc", "reallocarray", "free", "posix_memalign", "aligned_alloc", "memalign", "strdup",
    "strndup", "asprintf", "vasprintf", "getline", "fopen", "fdopen", "fclose", "fread", "fwrite", "fflush", "printf",
    "fprintf", "vfprintf", "puts", "fputs", "putchar", "perror", "abort", "exit", "__assert_fail", "syslog",
    "pthread_mutex_lock", "pthread_rwlock_wrlock", "pthread_rwlock_rdlock", "pthread_cond_wait", "sem_wait", "setenv",
    "putenv", "localtime", "strtok", "qsort", "__printf_chk", "__fprintf_chk", "__vfprintf_chk", "__asprintf_chk",
}
RUNTIME = re.compile(r"^(__(asan|ubsan|tsan|sanitizer|lsan|gcov|llvm_gcov|sancov)_|_GLOBAL_OFFSET_TABLE_$|__stack_chk_fail)")


def read_list(path):
    allowed = {}
    with open(path, encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            line = line.split("#")[0].rstrip()
            if not line or line[0].isspace():
                continue  # nothing, or more of the reason above
            name, _, reason = line.partition(" ")
            if not reason.strip():
                sys.exit(f"{path}:{number}: {name} has no reason")
            allowed[name] = reason.strip()
    return allowed


def nm(arguments, path):
    done = subprocess.run(["nm", *arguments, path], stdout=subprocess.PIPE, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines() if line.strip() and not line.endswith(":")]


def undefined(archive, allowed):
    """Names that some member needs and none defines."""
    need, have = set(), set()
    for fields in nm([], archive):
        if len(fields) == 2 and fields[0] in "Uw":
            need.add(fields[1])
        elif len(fields) == 3 and fields[1] not in "Uw":
            have.add(fields[2])
    for name in sorted(need - have):
        if RUNTIME.match(name) or name.startswith("sm_"):
            continue  # our own are the linker's business
        if name.endswith("64") and len(name) > 2:
            name = name[:-2]  # open64 is open with 64-bit offsets
        if name in FORBIDDEN:
            yield f"{name}: never in hook-safe code (it may allocate, block, print or end the program)"
        elif not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed):
            yield f"{name}: not in the list. Avoid it, or add it there with the reason why it is safe"
    if not have:
        yield "the archive defines nothing"


def exported(library, allowed, map_path):
    shown = {fields[-1].split("@")[0] for fields in nm(["-D", "--defined-only"], library)
             if not RUNTIME.match(fields[-1])}
    shown -= {name for name in shown if name.startswith("STATMEM_") or name in ("_init", "_fini")}
    for name in sorted(shown):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in allowed):
            yield f"{name}: exported, but not in the list"
    for pattern in sorted(allowed):
        if not any(fnmatch.fnmatchcase(name, pattern) for name in shown):
            yield f"{pattern}: in the list, but not exported"
    if map_path:
        with open(map_path, encoding="utf-8") as text:
            body = re.sub(r"/\*.*?\*/|#[^\n]*", "", text.read(), flags=re.S)
        globals_ = re.findall(r"[\w*]+(?=\s*;)", body.split("local:")[0])
        for name in sorted(shown):
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in globals_):
                yield f"{name}: exported, but not in {map_path}"
        if "local:" not in body:
            yield f"{map_path}: no `local: *;`"


def main():
    mode, library, list_path = sys.argv[1:4]
    allowed = read_list(list_path)
    if mode == "undefined":
        found = list(undefined(library, allowed))
    else:
        found = list(exported(library, allowed, sys.argv[4] if len(sys.argv) > 4 else None))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
