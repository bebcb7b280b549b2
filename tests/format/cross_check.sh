#!/bin/sh
# Compares the two decoders on traces:
#     cross_check.sh DUMP_CANONICAL TRACE...
# Exit status 1 when they differ. Problems that decode_trace.py finds are shown with STRICT=1, and then
# fail too: for traces that should be sound.
dump=$1
shift
here=$(dirname "$0")
python=python3
"$python" -c 'import zstandard' 2> /dev/null || python=/usr/bin/python3
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
status=0
for trace in "$@"; do
    "$dump" "$trace" > "$dir/c" 2> "$dir/c.err" || { echo "$trace: the reader fails: $(cat "$dir/c.err")"; status=1; continue; }
    "$python" "$here/decode_trace.py" "$trace" > "$dir/py" 2> "$dir/py.err"
    case $? in
    0) ;;
    1)
        [ -s "$dir/py.err" ] && { cat "$dir/py.err"; status=1; }
        if [ -n "$STRICT" ]; then
            echo "$trace: breaks rules of the format:"
            "$python" "$here/decode_trace.py" --summary "$trace" | head -40
            status=1
        fi
        ;;
    *) cat "$dir/py.err"; status=1 ;;
    esac
    if ! cmp -s "$dir/c" "$dir/py"; then
        echo "$trace: the decoders differ (< reader, > decode_trace.py):"
        diff "$dir/c" "$dir/py" | head -20
        status=1
    fi
done
exit $status
