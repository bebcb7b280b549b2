trace basic
cat basic.statmem | statmem info --json - | json samples events.collect
statmem info --json - < basic.statmem | json samples
