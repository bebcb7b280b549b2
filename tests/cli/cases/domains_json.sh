trace basic
statmem domains --json basic.statmem | json by rows.0.name rows.0.domain rows.0.allocated rows.0.own_peak \
    rows.0.own_peak_ns rows.1.own_peak rows.1.own_peak_ns rows.1.promoted.value rows.1.freed.value \
    freed_by_others more filter losses
statmem domains --csv basic.statmem | cut -d, -f1,2,5,7,12,17,22,27-
