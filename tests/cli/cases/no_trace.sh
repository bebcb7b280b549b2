statmem info
