statmem completion tcsh; echo $?
statmem manpage nothing; echo $?
