statmem inof x
