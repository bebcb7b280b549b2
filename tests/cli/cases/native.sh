trace native
statmem top native.statmem
statmem peak --bytes native.statmem | tail -n +4
statmem domains --json native.statmem | json rows.0.name rows.0.domain rows.0.own_peak rows.1.own_peak
COLUMNS=50 statmem timeline --by source native.statmem | grep ': peak'
COLUMNS=50 statmem timeline native.statmem | grep ': peak'
statmem top --source native --no-callers native.statmem
statmem query --by module,domain -f 'source in minor,major' native.statmem | tail -n +4
