trace basic
mkdir -p src/lib
i=1; while [ $i -le 40 ]; do echo "let line_$i = ()"; i=$((i + 1)); done > src/lib/work.ml
statmem source --source-root src/lib --context 1 work.ml basic.statmem
statmem source list.ml basic.statmem
statmem source --csv --weight live@end list.ml basic.statmem | cut -d, -f1,2,7
statmem source --json list.ml basic.statmem | json file total.value lines.0.line lines.0.own.value
statmem source nothing.ml basic.statmem
