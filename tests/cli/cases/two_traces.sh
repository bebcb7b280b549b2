statmem info a b
