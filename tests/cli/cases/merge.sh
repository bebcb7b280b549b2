trace basic
cp basic.statmem other.statmem
statmem merge -o both.stm basic.statmem other.statmem
statmem query --by domain --csv both.stm | cut -d, -f1,2
statmem query --by thread --csv both.stm | cut -d, -f1,2
statmem peak --by domain --csv both.stm | cut -d, -f1,2
statmem subsample --factor 0.5 basic.statmem half.stm 2>/dev/null
statmem merge -o x.stm basic.statmem half.stm
