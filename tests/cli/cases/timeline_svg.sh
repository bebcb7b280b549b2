trace basic
statmem timeline --svg basic.statmem | grep -c '<polyline\|</svg>'
