# a reader that goes away is no trouble, even where SIGPIPE is ignored
trace basic
trap '' PIPE
{ sleep 0.2; statmem dump basic.statmem; echo "status $?" >&2; } | :
