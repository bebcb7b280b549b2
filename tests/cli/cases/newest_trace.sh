# Without an argument, the newest .stm of the working directory is read; other names are not looked at.
trace empty
trace basic
mv empty.statmem old.stm
mv basic.statmem new.stm
touch -d '2001-01-01' old.stm
touch -d '2002-01-01' new.stm
echo text >zzz.txt
statmem info --json | json file
touch old.stm
statmem info --json | json file
statmem dump
