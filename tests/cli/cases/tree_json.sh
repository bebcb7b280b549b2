trace basic
statmem tree --json basic.statmem | json total.value measure unit nodes.depth nodes.total folded
