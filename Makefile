# On a machine with nothing but Python >= 3.11 and make: `make run`, `make test`. Both work twice in a row.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKSPACE ?= runs
RESULTS ?= results
OUT ?= results
FINDINGS ?= docs/findings.md
PAGES ?= README.md docs/learners.md

.PHONY: run tables test lint types tests docs dist package wheel soak mutants perf clean

run: $(VENV)/.installed  ## the main job on built-in data: every method once over, with a comparison table
	$(BIN)/bench run --grid quick --workspace $(WORKSPACE)

STANDARD := --from $(RESULTS)/trials.parquet --preset standard --features
LETTER := --from $(RESULTS)/paper.parquet --preset paper --features degree-onehot
OURS := learners augmenters controls
PAPERS := 10labelrate Match GAE GNN_Baseline Pool main_exp

tables: $(VENV)/.installed  ## every table, figure and report of results/, and docs/findings.md, from the trials alone
	$(BIN)/bench tables $(PAPERS) $(OURS) $(STANDARD) constant --mark ties --standalone --out $(OUT)/tables >/dev/null
	$(BIN)/bench compare $(STANDARD) constant --out $(OUT)/tables >/dev/null
	$(BIN)/bench figures $(STANDARD) constant --formats pdf,svg --out $(OUT)/tables >/dev/null
	$(BIN)/bench tables 10labelrate $(STANDARD) degree-onehot --mark ties --out $(OUT)/degree-onehot >/dev/null
	$(BIN)/bench tables $(PAPERS) $(LETTER) --mark ties --out $(OUT)/paper >/dev/null
	$(BIN)/bench compare $(LETTER) --out $(OUT)/paper >/dev/null
	$(BIN)/bench figures $(LETTER) --formats pdf,svg --out $(OUT)/paper >/dev/null
	$(BIN)/bench readings --from $(RESULTS)/readings.parquet --formats pdf,svg --out $(OUT)/readings >/dev/null
	$(BIN)/bench report $(STANDARD) constant --title 'augbench: results' --out $(OUT)/report.html
	$(BIN)/python docs/findings.py --results $(RESULTS) --rendered $(OUT) --out $(FINDINGS) --pages $(PAGES)

test: lint types docs package tests  ## everything that CI checks

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.developer
	$(BIN)/mypy

tests: $(VENV)/.developer  ## four workers on two cores: many tests wait for servers and processes
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 4 --cov --durations=40

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

perf: $(VENV)/.installed  ## seconds to the first line and trial, per trial beside a plain PyG loop, and of each augmenter
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/first_minute.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/perf.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/methods.py --dataset PROTEINS --dataset IMDB-BINARY
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/perf.py --datasets REDDIT-MULTI-5K --methods none dropedge gdm-unc \
		--folds 1 --growth --no-forecast

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
