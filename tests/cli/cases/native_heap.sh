# What OCaml's heap takes from the system is told apart from what lies in it, and counts only where a filter names
# sources: 2000 / (1 - exp (-2)) = 2313 B
sed 's/^at 100$/at 50\nowner 2 0 102\nalloc 2:0 2000 1 native origin=5 bytes 1,3\nat 100/' "$traces/native.txt" > heap.txt
mktrace heap.txt heap.statmem
statmem query --by source heap.statmem
statmem query --by source -f 'source in ocaml-heap,minor' heap.statmem
statmem timeline --csv --points 1 --series 'source ocaml-heap' --series 'size >= 1w' heap.statmem | cut -d, -f1-8
