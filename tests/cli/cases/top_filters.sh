trace basic
for filter in '--domain 1' '--source major' '--first 120us' '--last 700us' '--from 100us --to 150us' \
    '--domain 7'; do
    echo "== $filter"
    statmem top --no-callers $filter basic.statmem | tail -n +3
done
