# The two commands of the README, `make demo` and `make test`, do all set-up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# The gate of the demo: above the shipped TRADE's rate on the shipped dialogues (24 % there).
DEMO_RATE ?= 0.4

.PHONY: help demo test lint types tests matrix bench docs clean

help:  ## show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.base: pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c .ci/constraints.txt -e ".[trade]"
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet -c .ci/constraints.txt -e ".[all,dev]"
	@touch $@

demo: $(VENV)/.base  ## test the shipped TRADE on the shipped dialogues, under a gate
	$(BIN)/pytest --dst-model=trade --dst-max-failure-rate=$(DEMO_RATE) \
		--dst-report=demo-report.json --rootdir=examples/quickstart examples/quickstart

test: lint types tests  ## lint, types and all tests

lint: $(VENV)/.dev  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy

# Coverage is measured without ../shared, so that the figure is the same everywhere; the
# tests that need those files run on their own afterwards, and skip where they are absent.
# Of a test with many cases the first is measured: with DSTFUZZ_MEASURE_ALL=1 all of them are.
# Files stay whole, so that what the tests of one share is made once; and torch takes one thread,
# for the workers have the cores.
tests: $(VENV)/.docs  ## tests with branch coverage, then those on shared data
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 DSTFUZZ_SHARED=/nonexistent $(BIN)/coverage run -m pytest -q \
		-n $(JOBS) --dist=loadfile --no-loadscope-reorder
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90
	$(BIN)/pytest -q -m shared_data $$(grep -rlw shared_data --include='test_*.py' tests)

matrix: $(VENV)/.dev  ## the tests on each Python that is found, with pytest 8 and 9
	$(BIN)/nox

bench: $(VENV)/.dev  ## ratios of speed, each measured in one run
	$(BIN)/pip install --quiet -c .ci/constraints.txt -e ".[bench]"
	$(BIN)/pytest -q -s tests/benchmarks -o python_files='bench_*.py'

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/pip install --quiet -c .ci/constraints.txt -e ".[docs]"
	@touch $@

# Not from the network: everything that a page loads is in build/site.
docs: $(VENV)/.docs  ## the documentation as a site, in build/site
	rm -rf build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean:  ## remove what the other targets made
	rm -rf $(VENV) .nox build .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache demo-report.json
