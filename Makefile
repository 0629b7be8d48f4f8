# make demo | test | docs | lint | bench: each makes .venv when it is missing and installs what it needs.
# The ordinary commands behind them are in README.md.

PYTHON ?= python3
BIN := .venv/bin
# Python compiles what is imported, once; compiling all that is installed would take most of the time of installing.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --quiet --no-compile --constraint constraints.txt

# Two workers and two cores: one BLAS thread each, or they fight for the cores and results depend on the machine.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.PHONY: demo test docs lint bench clean
.DEFAULT_GOAL := test

.venv/.stamp: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	@touch $@

.venv/.stamp-bench: .venv/.stamp
	$(PIP) --editable '.[bench]'
	@touch $@

demo: .venv/.stamp
	$(BIN)/minmaxcon demo

test: .venv/.stamp
	timeout 1800 $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not rel'

docs: .venv/.stamp
	rm -rf docs/api/generated docs/problems
	$(BIN)/python -m sphinx -W --keep-going --jobs 2 --quiet -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going --quiet -b doctest -d docs/_build/doctrees docs docs/_build/doctest
	@echo "docs/_build/html/index.html"

lint: .venv/.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.stamp-bench
	$(BIN)/minmaxcon bench steps

clean:
	rm -rf build dist docs/_build docs/api/generated docs/problems .mypy_cache .pytest_cache .ruff_cache .hypothesis
