trace basic
for by in function line file domain thread source; do
    statmem top --no-callers --by $by basic.statmem | tail -n +4
done
