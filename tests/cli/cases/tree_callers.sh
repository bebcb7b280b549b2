trace basic
statmem tree --callers --weight live@end basic.statmem
