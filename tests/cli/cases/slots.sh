# domains one after another in one slot of OCaml 5 draw the same random numbers: info warns
cat > a.txt << 'X'
meta ocaml 5.3.0
loc 1 a.ml M.f 1 0 1
owner 0 0 10
alloc 0:0 1 1 minor 1
owner 0 7 11
alloc 0:1 1 2 minor 1
owner 0 9 12
alloc 0:2 1 4 minor 1
collect 0 0:0
end 1 0
X
mktrace a.txt a.statmem
statmem info --json a.statmem | json warnings.0 domains.1.id domains.1.allocated.bytes domains.2.samples
statmem top --by domain a.statmem | tail -n +4
sed 's/5.3.0/4.14.2/' a.txt > b.txt
mktrace b.txt b.statmem
statmem info --json b.statmem | json warnings
