# 1:0 is domain 1's and freed by domain 0: 2 samples of the 6 that were freed
trace basic
for width in 60 80 120; do COLUMNS=$width statmem domains basic.statmem | tail -n +4; done
statmem domains --threads -f 'not promoted' basic.statmem
