trace basic
statmem query --by function,domain --weight allocated,live@end basic.statmem
