# Each target does all it needs; `make` alone says what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PREFIX ?= /usr/local
DESTDIR ?=
# Only some steps of `make test`: make test STEPS="format clippy"
STEPS ?=
# Targets build on each other and cargo uses all processors by itself.
.NOTPARALLEL:

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## install the Debian packages that are missing (sudo where needed)
	@scripts/install-packages.sh build

.PHONY: report-ui
report-ui: ## build the page of the HTML report, where its sources changed
	@scripts/report-ui.sh

.PHONY: build
build: report-ui ## build target/release/slowpath, what replays plans, and the library that zygotes of Python load
	cargo build --release --locked -p slowpath-cli -p slowpath-fix --bin slowpath --bin slowpath-preload
	cargo build --release --locked -p slowpath-zygote-c --lib

.PHONY: build-aarch64
build-aarch64: report-ui ## cross-build slowpath for aarch64, for emulated machines and devices
	@scripts/build-aarch64.sh

.PHONY: zygote-wheel
zygote-wheel: build ## the wheel of the Python module slowpath_zygote, into target/wheels
	@scripts/fleet-python.sh
	@scripts/zygote-wheel.sh target/release/libslowpath_zygote_c.so target/wheels

.PHONY: demo
demo: setup build ## diagnose the cold start of a Python program into ./demo-report (needs root, uses sudo)
	@scripts/demo.sh

.PHONY: demo-browsers
demo-browsers: ## diagnose Chromium and Firefox side by side into ./demo-browsers (needs root, uses sudo)
	@scripts/install-packages.sh browsers
	@$(MAKE) --no-print-directory build
	@scripts/demo-browsers.sh

.PHONY: test
test: ## everything CI runs; STEPS="format clippy" for some of it
	@scripts/test.sh $(STEPS)

.PHONY: check
check: report-ui ## the loop at the desk: format, types, clippy, unit tests, checks of the repository
	@scripts/test.sh format types clippy-here unit

.PHONY: accept
accept: ## the long acceptance runs, results to docs/measurements (needs root)
	@scripts/install-packages.sh browsers peers
	@$(MAKE) --no-print-directory build build-aarch64
	@scripts/measure.sh accept

.PHONY: cases
cases: setup build ## programs with known truth: found, missed, invented, predicted and measured savings (needs root)
	@bench/accept/cases

.PHONY: fleet-spark
fleet-spark: ## field data on a real Spark cluster: master and two workers on loopback (needs Java 17)
	@scripts/fleet-spark.sh

.PHONY: fleet-clickhouse
fleet-clickhouse: ## field data on Debian's ClickHouse server, started on loopback
	@scripts/fleet-clickhouse.sh

# A block that is marked `long` runs only if the line of its fence is given: make screens PAGE=docs/tour.md BLOCKS="198"
PAGE ?= docs/tour.md
BLOCKS ?=
.PHONY: screens
screens: setup build ## run the commands that a page shows, and put what they print there (needs root)
	cargo run --quiet --locked -p slowpath-house --example screens -- target/release $(PAGE) $(BLOCKS)

.PHONY: bench
bench: ## measurements beside other tools, results to docs/measurements (needs root)
	@scripts/install-packages.sh browsers peers
	@$(MAKE) --no-print-directory build
	@scripts/measure.sh bench

# Only some targets: make fuzz TARGETS="perf_map manifest"
TARGETS ?=
SECONDS_EACH ?= 600

.PHONY: fuzz
fuzz: report-ui ## fuzz every parser of foreign data for SECONDS_EACH=600, results to docs/measurements
	@SECONDS_EACH=$(SECONDS_EACH) scripts/fuzz.sh run $(TARGETS)

.PHONY: lint
lint: report-ui ## format and clippy only
	@scripts/test.sh format clippy

.PHONY: schemas
schemas: report-ui ## write docs/reference, docs/schemas and the page's types anew from the types
	UPDATE_DOCS=1 cargo test --quiet --locked -p slowpath-house --test repository -- docs:: the_architecture
	@scripts/fleet-python.sh
	target/fleet-venv/bin/python -m slowpath_fleet.published_schemas docs/schemas
	npm --prefix report-ui run --silent types

# What is installed, and where the parts of it go that shells and man look for.
PROGRAM ?= target/release/slowpath
BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
MAN = $(SHARE)/man/man1
BASH_COMPLETION = $(SHARE)/bash-completion/completions/slowpath
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_slowpath
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/slowpath.fish
# What zygotes of Python load; left out where it was not built.
ZYGOTE_LIBRARY ?= $(dir $(PROGRAM))libslowpath_zygote_c.so
ZYGOTE_INSTALLED = $(DESTDIR)$(PREFIX)/lib/libslowpath_zygote_c.so
# What replays plans at cold starts; left out where it was not built: `slowpath preload run` does the same.
PRELOAD ?= $(dir $(PROGRAM))slowpath-preload

.PHONY: install
install: ## copy slowpath, its man pages and completions below $(DESTDIR)$(PREFIX); after make build
	@test -x $(PROGRAM) || { echo "make build first" >&2; exit 2; }
	install -D -m 755 $(PROGRAM) $(BIN)/slowpath
	rm -f $(BIN)/slowpath-preload
	test ! -e $(PRELOAD) || install -D -m 755 $(PRELOAD) $(BIN)/slowpath-preload
	test ! -e $(ZYGOTE_LIBRARY) || install -D -m 644 $(ZYGOTE_LIBRARY) $(ZYGOTE_INSTALLED)
	install -d $(MAN) $(dir $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION))
	$(PROGRAM) man $(MAN)
	$(PROGRAM) completions bash >$(BASH_COMPLETION)
	$(PROGRAM) completions zsh >$(ZSH_COMPLETION)
	$(PROGRAM) completions fish >$(FISH_COMPLETION)

.PHONY: uninstall
uninstall: ## remove what make install copied
	rm -f $(BIN)/slowpath $(BIN)/slowpath-preload $(ZYGOTE_INSTALLED) $(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)
	rm -f $(MAN)/slowpath.1 $(MAN)/slowpath-*.1

.PHONY: clean
clean: ## remove everything that was built
	cargo clean --quiet
	rm -rf target report-ui/dist report-ui/node_modules demo-report demo-browsers
