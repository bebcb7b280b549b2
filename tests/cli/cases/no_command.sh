statmem 2> err; echo $?
sed '/^Commands:/,/^$/d' err
