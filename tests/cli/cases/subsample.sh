trace basic
statmem subsample --from 100us --to 200us basic.statmem part.stm
statmem query --by function --csv part.stm | cut -d, -f1,2
statmem subsample --factor 0.5 --seed 3 --force basic.statmem part.stm 2>/dev/null
statmem query --json part.stm | json trace.sample_rate
statmem subsample --factor 2 basic.statmem x.stm
