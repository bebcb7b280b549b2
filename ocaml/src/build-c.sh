#!/bin/sh
# Compiles the C sources and the stubs into libstatmem_stubs.a and dllstatmem_stubs.so, in the current folder.
#   build-c.sh OCAML_WHERE SOURCE_ROOT VERSION CC [FLAG...]
# Compressed traces can be read when pkg-config finds libzstd; link.sexp tells the linker.
set -eu
where=$1 root=$2 version=$3
shift 3
cc=$*

zstd_flags='' libs='-lpthread -ldl -lm'
if pkg-config --exists libzstd 2>/dev/null; then
    zstd_flags="-DSM_HAVE_ZSTD=1 $(pkg-config --cflags libzstd)"
    libs="$(pkg-config --libs libzstd) $libs"
fi
echo "($libs)" >link.sexp

flags="-c -std=gnu11 -O2 -g -fPIC -fno-strict-aliasing -ftls-model=initial-exec -D_GNU_SOURCE $zstd_flags"
flags="$flags -I$root/src -I$root/include"
mkdir -p objects
objects='' pids=''

# compile OBJECT ARGUMENT...; four at a time
compile() {
    objects="$objects $1"
    # shellcheck disable=SC2086 # flags are words
    $cc $flags -DSM_VERSION="\"$version\"" -o "$@" &
    pids="$pids $!"
    if [ "$(echo "$pids" | wc -w)" -ge 4 ]; then finish; fi
}
finish() {
    for pid in $pids; do wait "$pid"; done
    pids=''
}

for folder in base format encode record unwind ocaml capi util decode merge convert; do
    for source in "$root/src/$folder"/*.c; do
        compile "objects/$folder-$(basename "$source" .c).o" -fvisibility=hidden "$source"
    done
done
for stubs in recorder reader writer; do
    compile "objects/stubs-$stubs.o" -I"$where" "${stubs}_stubs.c"
done
finish
rm -f libstatmem_stubs.a
# shellcheck disable=SC2086
ar rcs libstatmem_stubs.a $objects
# shellcheck disable=SC2086
$cc -shared -o dllstatmem_stubs.so $objects $libs
