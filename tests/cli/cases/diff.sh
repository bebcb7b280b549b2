trace basic
statmem strip basic.statmem renamed.stm 2>/dev/null
statmem diff basic.statmem basic.statmem | tail -4
statmem diff --csv --inclusive --filter 'not promoted' basic.statmem basic.statmem
statmem diff --json basic.statmem renamed.stm | json delta significant scale rows.0.delta rows.0.own_a.value rows.0.own_b.value
statmem diff --work 1:2 --fail-above 1B basic.statmem basic.statmem >/dev/null
statmem diff basic.statmem
