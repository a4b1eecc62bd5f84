# On a machine with nothing but Python >= 3.11 and make: `make run`, `make test`. Both work twice in a row.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKSPACE ?= runs

.PHONY: run test lint types tests soak perf clean

run: $(VENV)/.installed  ## the main job on built-in data: every method once over, with a comparison table
	$(BIN)/bench run --grid quick --workspace $(WORKSPACE)

test: lint types tests  ## everything that CI checks

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.developer
	$(BIN)/mypy

tests: $(VENV)/.developer  ## four workers on two cores: many tests wait for servers and processes
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 4

soak: $(VENV)/.developer  ## the long forms of the reliability tests, see docs/reliability.md
	OMP_NUM_THREADS=1 $(BIN)/pytest -m soak --timeout 3600

perf: $(VENV)/.installed  ## seconds per trial beside a plain PyG loop, in one run
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/perf.py

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("augbench needs Python 3.11 or newer, not " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12 run") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.developer: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
