trace basic
statmem dump --json basic.statmem > lines
while read -r line; do echo "$line" | json || echo "invalid: $line"; done < lines
cat lines
