#!/bin/sh
# Both decoders on sound traces of all sorts, and on damaged ones: cross_check_made.sh DUMP_CANONICAL MAKE_TRACE
dump=$1
make=$2
here=$(dirname "$0")
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
status=0
i=0
for arguments in "1 10 1" "1 3000 2" "3 4000 3 0 700" "3 4000 4 1" "9 5000 5 1 2000" "20 4000 6 0 300"; do
    i=$((i + 1))
    # shellcheck disable=SC2086 # a list of numbers
    "$make" "$dir/sound$i.stm" $arguments || exit 2
done
STRICT=1 "$here/cross_check.sh" "$dump" "$dir"/sound*.stm || status=1

# Damage: cut, a byte changed, bytes removed, twice the same trace.
size=$(wc -c < "$dir/sound3.stm")
for at in 150 5000 20001 $((size / 2)) $((size - 30)); do
    head -c "$at" "$dir/sound3.stm" > "$dir/cut$at.stm"
    { head -c "$at" "$dir/sound3.stm"; printf 'X'; tail -c +$((at + 2)) "$dir/sound3.stm"; } > "$dir/changed$at.stm"
    { head -c "$at" "$dir/sound3.stm"; tail -c +$((at + 700)) "$dir/sound3.stm"; } > "$dir/removed$at.stm"
    { head -c "$at" "$dir/sound3.stm"; head -c 999 /dev/zero; tail -c +$((at + 1)) "$dir/sound3.stm"; } > "$dir/inserted$at.stm"
done
cat "$dir/sound3.stm" "$dir/sound3.stm" > "$dir/twice.stm"
"$here/cross_check.sh" "$dump" "$dir"/cut*.stm "$dir"/changed*.stm "$dir"/removed*.stm "$dir"/inserted*.stm "$dir/twice.stm" || status=1
exit $status
