# A small front for Meson and Ninja; each target is a line or two that can be run by hand as well. The two commands
# for a fresh machine are `make demo` and `make test`: they install what is missing first.

BUILD ?= build
PREFIX ?= /usr/local
MESON_OPTIONS ?=

.DEFAULT_GOAL := help
.PHONY: help deps build demo test test-all bench asan tsan fmt lint install clean

help: ## show this list
	@echo "statmem - make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1@\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS=@ read -r name what; do printf '  %-10s %s\n' $$name "$$what"; done
	@echo "Everything is built in $(BUILD)/ (BUILD=DIR changes it); the program is $(BUILD)/statmem."

build: ## build the program, the preload library and the tests
	@tools/install-deps build
	@tools/build-page
	@tools/configure $(BUILD) $(MESON_OPTIONS)
	@ninja -C $(BUILD)

demo: ## record a multi-domain OCaml 5.3 program without changing it, show the reports
	@tools/install-deps demo
	@$(MAKE) --no-print-directory build
	@tools/demo $(BUILD)

test: ## run every test (OCaml 4.13/4.14 and 5.3)
	@tools/install-deps test
	@tools/ocaml-toolchain 4.13 >/dev/null
	@tools/ocaml-toolchain 5.3 >/dev/null
	@$(MAKE) --no-print-directory build MESON_OPTIONS="$(MESON_OPTIONS) -Dtests=enabled"
	@tools/run-tests $(BUILD)

test-all: ## the same, and on OCaml 4.14, 5.4 and 5.5 too (slow)
	@tools/install-deps test
	@$(MAKE) --no-print-directory build MESON_OPTIONS="$(MESON_OPTIONS) -Dtests=enabled"
	@tools/run-tests --all $(BUILD)

bench: ## measure overhead, cost per sample, bytes per event, decoding speed
	@tools/install-deps test
	@tools/ocaml-toolchain 5.3 >/dev/null
	@$(MAKE) --no-print-directory build
	@bench/run $(BUILD)

asan: ## every test with the address and undefined-behaviour sanitizers
	@tools/install-deps test
	@tools/configure $(BUILD)-asan -Db_sanitize=address,undefined -Db_lundef=false $(MESON_OPTIONS)
	@tools/run-tests --sanitized $(BUILD)-asan

tsan: ## the recorder's tests with the thread sanitizer
	@tools/install-deps test
	@tools/configure $(BUILD)-tsan -Db_sanitize=thread -Db_lundef=false $(MESON_OPTIONS)
	@tools/run-tests --threads $(BUILD)-tsan

fmt: ## format the C sources
	@tools/install-deps lint
	@tools/lint --fix

lint: ## check format, static analysis, scripts, forbidden calls
	@tools/install-deps lint
	@tools/lint $(BUILD)

install: ## install below PREFIX (/usr/local)
	@tools/install-deps build
	@tools/build-page
	@tools/configure $(BUILD) --prefix $(PREFIX) $(MESON_OPTIONS)
	@ninja -C $(BUILD)
	meson install -C $(BUILD) --no-rebuild

clean: ## remove what was built
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan _build _build-*
