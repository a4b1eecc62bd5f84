# On a machine with nothing but Python >= 3.11 and make: `make run`, `make test`. Both work twice in a row.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKSPACE ?= runs
RESULTS ?= results/trials.parquet
OUT ?= results

.PHONY: run tables test lint types tests docs dist package wheel soak mutants perf clean

run: $(VENV)/.installed  ## the main job on built-in data: every method once over, with a comparison table
	$(BIN)/bench run --grid quick --workspace $(WORKSPACE)

tables: $(VENV)/.installed  ## every table, figure and the report of results/, from its trials alone
	$(BIN)/bench tables --from $(RESULTS) --preset standard --features constant --mark ties --standalone --out $(OUT)/tables >/dev/null
	$(BIN)/bench tables 10labelrate --from $(RESULTS) --preset standard --features degree-onehot --mark ties --out $(OUT)/degree-onehot >/dev/null
	$(BIN)/bench compare --from $(RESULTS) --preset standard --features constant --out $(OUT)/tables >/dev/null
	$(BIN)/bench figures --from $(RESULTS) --preset standard --features constant --formats pdf,svg --out $(OUT)/tables
	$(BIN)/bench report --from $(RESULTS) --preset standard --features constant --title 'augbench: results' --out $(OUT)/report.html

test: lint types docs package tests  ## everything that CI checks

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.developer
	$(BIN)/mypy

tests: $(VENV)/.developer  ## four workers on two cores: many tests wait for servers and processes
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 4 --cov

# Not with --quiet: a strict build then counts no warnings, and never fails.
docs: $(VENV)/.developer  ## the site, in build/site; a dead link or a missing docstring fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

dist: $(VENV)/.developer  ## sdist and wheel, in dist/
	rm -rf build/lib dist
	$(BIN)/python -m build --quiet

package: dist  ## the wheel, installed and used outside the checkout, with the dependencies installed here
	$(BIN)/python tests/package/check_wheel.py --reuse

wheel: dist  ## the same with all dependencies installed anew into an empty environment, which takes minutes
	$(BIN)/python tests/package/check_wheel.py

soak: $(VENV)/.developer  ## the long forms of the reliability tests, see docs/reliability.md
	OMP_NUM_THREADS=1 $(BIN)/pytest -m soak --timeout 3600

mutants: $(VENV)/.developer  ## plants faults in splits, budgets, seeds, ledger and statistics, and names those that live
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutation/mutants.py

perf: $(VENV)/.installed  ## seconds per trial beside a plain PyG loop, and of each augmenter beside none
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/perf.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/methods.py --dataset PROTEINS --dataset IMDB-BINARY

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
