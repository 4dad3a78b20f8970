# A thin front to meson, for people. `make help` lists the targets.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
PYTHON := /usr/bin/python3
PYTEST := $(PYTHON) -m pytest -q -p no:cacheprovider

.DEFAULT_GOAL := help
.PHONY: help run build test test-guest test-all check sanitize coverage fuzz bench install clean deps second-compiler

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Install what is missing, build, show what this host can do, and a short demonstration
	@$(BUILD)/nacre doctor
	@tools/demo $(BUILD)

build: ## Install what is missing and build; afterwards ./build/nacre runs from the tree
	@tools/deps build
	@tools/build $(BUILD)

test: ## Install what the tests need and run the whole suite
	@tools/deps build test
	@tools/build $(BUILD) -Dtests=true
	@meson test -C $(BUILD) --print-errorlogs
	@tools/suite $(BUILD)
	@for suite in escape fault; do \
		NACRE_BUILD=$(abspath $(BUILD)) $(PYTEST) tests/$$suite || exit 1; \
	done

test-all: test check sanitize coverage second-compiler ## Everything: tests, checks, sanitizers, coverage, clang

test-guest: ## The tests about control groups, in a QEMU guest with version 2; TESTS="tests/func/test_exec.py ..." for others
	@tools/deps build test
	@tools/build $(BUILD) -Dtests=true
	@$(PYTEST) tests/func/test_guest.py tests/func/test_guest_cgroup.py tests/func/test_guest_exec.py tests/func/test_guest_top.py
	@$(PYTHON) tests/guest/suite.py $(BUILD) $(TESTS)

check: ## clang-format, clang-tidy, cppcheck, shellcheck, the rules of the house
	@tools/deps build test check
	@tools/build $(BUILD) -Dtests=true
	@CC=clang tools/build $(BUILD)-clang -Dwerror=true -Dtests=true
	@tools/check $(BUILD) $(BUILD)-clang

sanitize: ## The whole suite under AddressSanitizer and UndefinedBehaviorSanitizer, leak check on
	@tools/deps build test
	@tools/build $(BUILD)-asan -Dtests=true -Db_sanitize=address,undefined -Db_lundef=false
	@meson test -C $(BUILD)-asan --print-errorlogs
	@tools/suite $(BUILD)-asan

coverage: ## Line coverage of engine, runtime and watch: a table, and HTML in build-cov/coverage
	@tools/deps build test cover
	@tools/build $(BUILD)-cov -Dtests=true -Db_coverage=true -Doptimization=0
	@tools/coverage $(BUILD)-cov

second-compiler: ## Build and test with clang
	@tools/deps build test check
	@CC=clang tools/build $(BUILD)-clang -Dwerror=true -Dtests=true
	@meson test -C $(BUILD)-clang --print-errorlogs

fuzz: ## Fuzz every parser for FUZZ_SECONDS each
	@tools/deps build check
	@CC=clang tools/build $(BUILD)-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
	@tools/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

bench: build ## Measure beside peers, and write bench/RESULTS.md; QUICK=1: within a minute, to the terminal
	@tools/deps build test bench
ifdef QUICK
	@$(PYTHON) bench/exec.py $(BUILD) --quick
	@$(PYTHON) bench/warm.py $(BUILD) --quick
else
	@$(PYTHON) bench/doctor.py $(BUILD)/nacre
	@$(PYTHON) bench/exec.py $(BUILD) --write
	@$(PYTHON) bench/policy.py $(BUILD)/nacre
	@$(PYTHON) bench/recorder.py $(BUILD)
	@NACRE_BUILD=$(BUILD) $(PYTHON) bench/egress.py
	@$(PYTHON) bench/relay.py $(BUILD)
	@$(PYTHON) bench/clients.py $(BUILD)
	@$(PYTHON) bench/warm.py $(BUILD) --write
	@$(PYTHON) bench/growth.py $(BUILD) --write
endif

install: build ## Install below DESTDIR and PREFIX
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

clean: ## Remove everything that was built
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-cov $(BUILD)-clang $(BUILD)-fuzz $(BUILD)-guest
