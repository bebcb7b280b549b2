#!/bin/sh
# Both decoders on what the recorder writes: cross_check_recorded.sh DUMP_CANONICAL RECORD_DRIVER
dump=$1
driver=$2
here=$(dirname "$0")
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
status=0
"$driver" "$dir/one.stm" 1 5000 || status=1
"$driver" "$dir/four.stm" 4 5000 100 || status=1
"$driver" "$dir/shallow.stm" 2 3000 2 || status=1
"$driver" "$dir/follow.stm" 2 2000 0 follow || status=1
"$driver" "$dir/exit.stm" 3 4000 0 exit || status=1
"$driver" "$dir/kill.stm" 3 4000 0 kill 2> /dev/null
ls "$dir"/kill.stm.tail "$dir"/exit.stm.tail > /dev/null || status=1
ls "$dir"/one.stm.tail 2> /dev/null && status=1
set -- "$dir"/*.stm "$dir"/follow.stm.[0-9]*
for trace; do
    shift
    case $trace in *.tail) ;; *) set -- "$@" "$trace" ;; esac
done
[ $# -eq 7 ] || { echo "expected 7 traces, found $#"; status=1; }
STRICT=1 "$here/cross_check.sh" "$dump" "$@" || status=1
exit $status
