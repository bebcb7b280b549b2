# Whatever names and files are: no report prints control characters, none crashes, all answer alike
trace hostile
trace empty
: > nothing
echo "not a trace" > text
commands="top tree peak leaks temporary sizes lifetimes domains query timeline"
for c in $commands; do
    for options in '' --json --csv; do statmem $c $options hostile.statmem; done
done > out 2> err
statmem timeline --by site --svg hostile.statmem > picture.svg
statmem tree --key frame --callers hostile.statmem >> out
statmem query --by stack,thread,file,module hostile.statmem >> out
wc -c < err
tr -d '\n\r' < out | LC_ALL=C grep -c "$(printf '[\001-\037\177]')"
grep -c "$(printf '\342\200\256')" out picture.svg
python3 -c "import xml.dom.minidom, sys; print(xml.dom.minidom.parse('picture.svg').documentElement.tagName)"
for c in $commands; do
    statmem $c empty.statmem > out 2> err || echo "$c: exit status $?"
    echo "$c: $(tail -n 1 out | cut -c1-60)"
    statmem $c --json empty.statmem | json filter
    for f in nothing text .; do statmem $c $f > out 2>> all; echo $?; done | tr '\n' ' '
    wc -c < out
done
sort all | uniq -c | sed 's/^ *//'
