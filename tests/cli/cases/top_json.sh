trace basic
statmem top --json basic.statmem | json by sort sample_rate allocated live peak promoted collected blocks \
    trace_peak peak_ns n_rows rows.0 rows.1.name rows.1.callers rows.2.name rows.2.callers
statmem top --json --by function --no-callers basic.statmem | json rows.1.name rows.1.with_callees
