trace basic
statmem tree --focus 'Work.run > List.cons' basic.statmem
