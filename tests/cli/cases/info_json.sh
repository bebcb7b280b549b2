trace basic
statmem info --json basic.statmem | json format header end events samples words max_words max_depth \
    sum_depth allocated promoted live peak peak_ns heaps.external origins.marshal domains threads \
    marks max_rss_bytes losses warnings
