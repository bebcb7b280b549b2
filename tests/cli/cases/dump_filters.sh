trace basic
for filter in '--kind collect' '--domain 1' '--source external' '--limit 2' '--from 200us --to 300us' \
    '--kind other'; do
    echo "== $filter"
    statmem dump --no-stacks $filter basic.statmem
done
