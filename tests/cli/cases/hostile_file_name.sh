statmem info "$(printf 'no\033[31m\nsuch')"
