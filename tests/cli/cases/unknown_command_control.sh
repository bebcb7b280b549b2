statmem "$(printf 'a\033[31mb')"
