# one function name in two files stays two functions; one place under two codes is one site
cat > a.txt << 'X'
loc 1 a.ml M.f 1 0 1
loc 2 b.ml M.f 1 0 1
loc 3 a.ml M.f 1 0 1
alloc 0:0 1 1 minor 1
alloc 0:1 1 2 minor 2
alloc 0:2 1 4 minor 3
end 1 0
X
mktrace a.txt a.statmem
statmem top --by function --no-callers a.statmem | tail -n +4
statmem top --no-callers a.statmem | tail -n +4
