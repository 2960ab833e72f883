# The two commands of the README, `make demo` and `make test`, do all set-up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# The gate of the demo: above the shipped TRADE's rate on the shipped dialogues (31 % there).
DEMO_RATE ?= 0.4

.PHONY: help demo test lint types tests nightly matrix bench docs clean

help:  ## show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.base: pyproject.toml .ci/constraints.txt
	$(PYTHON) -m venv $(VENV)
	# Python compiles what it imports: to compile all of torch takes longer than the demo.
	$(BIN)/pip install --quiet --no-compile -c .ci/constraints.txt -e ".[trade]"
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/pip install --quiet -c .ci/constraints.txt -e ".[all,dev]"
	@touch $@

demo: $(VENV)/.base  ## test the shipped TRADE on the shipped dialogues, under a gate
	$(BIN)/pytest --dst-model=trade --dst-max-failure-rate=$(DEMO_RATE) \
		--dst-report=demo-report.json --rootdir=examples/quickstart examples/quickstart

test: lint types tests  ## lint, types and the tests that CI runs

lint: $(VENV)/.dev  ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## mypy --strict
	$(BIN)/mypy

# Files stay whole, so that the tests of a file share what is made once. Torch takes one thread,
# because the workers have the cores. Bytecode is kept, else each of the hundreds of processes that
# tests start compiles all that it loads.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q -n $(JOBS) --dist=loadfile --no-loadscope-reorder

tests: $(VENV)/.docs  ## the tests, without the slow ones
	$(PYTEST) -m "not nightly and not shared_data" --timeout=600 --timeout-method=thread

nightly: lint types $(VENV)/.docs  ## all tests with branch coverage, those on shared data included
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -q -n $(JOBS) --dist=loadfile
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90

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
