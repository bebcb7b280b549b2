# Names stay readable: places give way, chains stay in one column, deep branches are drawn narrower
awk 'BEGIN { print "meta executable prog"; print "meta rate 1"
    for (i = 1; i <= 12; i++) print "loc", i, "some/folder/module_" i ".ml", "Module_" i ".function_of_some_length", i, 0, 1
    print "owner 0 0 1"; print "at 0"
    for (i = 1; i <= 11; i++) { s = s (i > 1 ? "," : "") i; print "alloc 0:" i - 1, 1, 1, "minor", s }
    print "alloc 0:11 1 50 minor", s ",12"; print "end 1 0" }' > deep.txt
mktrace deep.txt deep.statmem
for width in 80 120; do COLUMNS=$width statmem tree deep.statmem | tail -n +4; done
awk 'BEGIN { print "meta executable prog"; print "meta rate 1"
    for (i = 1; i <= 12; i++) print "loc", i, "some/folder/module_" i ".ml", "Module_" i ".function_of_some_length", i, 0, 1
    print "owner 0 0 1"; print "at 0"
    for (i = 1; i <= 11; i++) { s = s (i > 1 ? "," : "") i; print "alloc 0:" i - 1, 1, 5, "minor", s }
    print "end 1 0" }' > branched.txt
mktrace branched.txt branched.statmem
for width in 80 120; do COLUMNS=$width statmem tree --key line branched.statmem | tail -n +4; done
LC_ALL=C COLUMNS=80 statmem tree branched.statmem | tail -n +4
