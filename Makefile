# `make demo` and `make test` do all their own set-up; only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev

# the tests' processes are as many as the cores: more threads in each would only wait for each other
test test-all mutants: export OPENBLAS_NUM_THREADS := 1
test test-all mutants: export OMP_NUM_THREADS := 1

.PHONY: help demo test test-all mutants replay lint types format house bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY)  ## adapt a wage model from public to private people; writes demo/
	$(BIN)/dpadapt demo

test: $(DEV)  ## lint, types, doctests and the fast tests (a few minutes on two cores)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2

test-all: test  ## the slow statistical and end-to-end suites as well
	$(BIN)/pytest -q -n 2 -m slow tests

mutants: $(DEV)  ## one privacy-critical line broken at a time: the tests must notice each
	PYTHONPATH=tests $(BIN)/python -m mutants

lint: $(DEV)  ## style only
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(DEV)  ## mypy, strict for the trusted core
	$(BIN)/mypy

format: $(DEV)  ## put sources and pages into the one format
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .
	$(BIN)/python -m tools.api && $(BIN)/python -m tools.verdicts && $(BIN)/python -m tools.wrap

house: $(DEV)  ## measure the sources and draw them into house.png
	$(BIN)/python -m tools.house && $(BIN)/python -m tools.draw house.png

bench: $(DEV)  ## speed as ratios: import, accounting, Parquet, discrepancy, matching, profiled fits
	$(BIN)/python benchmarks/bench_import.py
	$(BIN)/python benchmarks/bench_accounting.py
	$(BIN)/python benchmarks/bench_parquet_moment.py
	$(BIN)/python benchmarks/bench_discrepancy.py --quick
	$(BIN)/python benchmarks/bench_kmm.py
	$(BIN)/python benchmarks/bench_profiled.py

replay: $(READY)  ## replay every estimator and option on hostile neighbours (a few minutes)
	$(BIN)/dpadapt audit --library

clean:  ## remove the virtual environment and what the demo wrote
	rm -rf $(VENV) demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "dpadapt needs Python 3.11 or newer; try: make PYTHON=python3.12 demo"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@ $(READY)
