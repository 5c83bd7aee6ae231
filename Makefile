PYTHON ?= python3
PORT ?= 10001
# Test processes: more than there are processors, since many tests wait; 0 runs all in one, for a debugger.
JOBS ?= 4
PYTEST_ARGS ?=
BENCH_ARGS ?=
STORM_ARGS ?=

VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
DEMO_INSTALLED := $(VENV)/.installed-demo

.DEFAULT_GOAL := help
.PHONY: help test unit unit-on demo demo-time bench bench-api bench-guard bench-peers bench-growth bench-turns bench-marathon storm copy-check lint types mypy pyright layers format docs terminal compiled servers clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: $(INSTALLED) servers compiled ## Run the tests (JOBS=4, PYTEST_ARGS=...)
	$(BIN)/python -m tools.run_tests -n $(JOBS) --dist worksteal $(PYTEST_ARGS)
	$(if $(PYTEST_ARGS),,$(BIN)/python -m benchmarks.guard)

unit: $(INSTALLED) servers compiled ## Run the unit tests alone, in about a minute (JOBS=4, PYTEST_ARGS=...)
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal tests/unit $(PYTEST_ARGS)

unit-on: ## Run the unit and conformance tests on another Python, in its own environment (PYTHON=python3.13)
	@$(MAKE) --no-print-directory unit VENV=.venv-$(notdir $(PYTHON)) PYTEST_ARGS="tests/conformance $(PYTEST_ARGS)"

demo: $(DEMO_INSTALLED) ## Start the example application (PORT=10001)
	PORT=$(PORT) $(BIN)/python -m duetime.demo

demo-time: ## Measure the time from git clone to the demo's first answer
	@$(PYTHON) -m tools.demo_time

bench: $(INSTALLED) servers ## Measure (BENCH_ARGS=...)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

bench-peers: $(INSTALLED) servers ## Compare with other schedulers (QUICK=1, BENCH_ARGS=...)
	$(BIN)/python -m benchmarks.peers $(if $(QUICK),--quick) $(BENCH_ARGS)

bench-growth: $(INSTALLED) servers ## Measure what grows with workers, jobs and schedules (QUICK=1, BENCH_ARGS=...)
	$(BIN)/python -m benchmarks.growth $(if $(QUICK),--quick) $(BENCH_ARGS)

bench-api: $(INSTALLED) servers ## Measure the HTTP API, and ask it about a million jobs (BENCH_ARGS=...)
	$(BIN)/python -m benchmarks.api $(BENCH_ARGS)

bench-guard: $(INSTALLED) servers ## Compare with the committed shares of the limits (RENEW=1 writes all anew, ADD=1 new ones only)
	$(BIN)/python -m benchmarks.guard $(if $(RENEW),--renew) $(if $(ADD),--add)

bench-turns: $(INSTALLED) servers ## Compare with another checkout in turns (OTHER=../old, BENCH_ARGS=...)
	$(BIN)/python -m benchmarks.turns --other $(OTHER) $(BENCH_ARGS)

bench-marathon: $(INSTALLED) servers ## Drain a million jobs, and see whether anything grows (JOBS=100000, BENCH_ARGS=...)
	$(BIN)/python -m benchmarks.marathon $(if $(filter command line environment,$(origin JOBS)),--jobs $(JOBS)) $(BENCH_ARGS)

storm: $(INSTALLED) servers ## Break everything on each store for ten minutes, and look for broken promises (STORM_ARGS=...)
	$(BIN)/python -m tests.integration.storm $(STORM_ARGS)
	DUETIME_SOUND_SECONDS=60 $(BIN)/python -m pytest tests/integration/test_sound_files.py -k four

copy-check: $(INSTALLED) servers ## Copy 100,000 jobs and 1,000 schedules between each pair of stores, interrupted once
	COPY_JOBS=100000 COPY_SCHEDULES=1000 $(BIN)/python -m pytest tests/integration/copying/test_copy.py --durations=0 $(PYTEST_ARGS)

lint: $(INSTALLED) ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: mypy pyright ## Check types, with mypy and with pyright

mypy: $(INSTALLED)
	$(BIN)/mypy

pyright: $(INSTALLED)
	$(BIN)/basedpyright

layers: $(INSTALLED) ## Check that the layers import one way
	$(BIN)/lint-imports --no-logo

format: $(INSTALLED) ## Format, and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(INSTALLED) ## Write the generated pages of docs/ anew
	$(BIN)/python -m tools.failure_modes
	$(BIN)/python -m tools.tables
	$(BIN)/python -m tools.openapi

terminal: $(INSTALLED) ## Draw the picture of a terminal anew, from a run
	$(BIN)/python -m tools.terminal

# Tests start hundreds of processes: where Python may not keep bytecode, each of them would compile everything anew.
compiled: $(INSTALLED)
	@$(BIN)/python -m compileall -q -j $(JOBS) src tests tools benchmarks

servers: $(INSTALLED) ## Find or install the database servers that the tests start
	@$(BIN)/python -m tools.servers

clean: ## Remove the virtual environment and all caches
	rm -rf .venv .venv-* .bench/envs .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(INSTALLED): pyproject.toml tools/bootstrap.py
	@$(PYTHON) -m tools.bootstrap dev $(VENV)
	@touch $(INSTALLED) $(DEMO_INSTALLED)

# The demo needs a tenth of what development does.
$(DEMO_INSTALLED): pyproject.toml tools/bootstrap.py
	@$(PYTHON) -m tools.bootstrap web $(VENV)
	@touch $@
