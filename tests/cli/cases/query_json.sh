trace basic
statmem query --by function --json basic.statmem | json by weights totals.0 rows.0.values.0.name rows.0.estimates.0 more filter losses
