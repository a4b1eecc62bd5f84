"""Large ledgers: what a trial costs does not grow with their number, and a million of them fit into memory."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.results.frame import from_records
from bench.results.ledger import read_state
from bench.results.workspace import Workspace, records_at
from tables import explorer

HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"augbench_{name}", HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


big = _load("big_ledger")


def kept_and_peak(job: Any) -> tuple[float, float]:
    """Bytes that the result of a job holds, and the most it had at once."""
    tracemalloc.start()
    try:
        result = job()
        held, peak = tracemalloc.get_traced_memory()
        del result
    finally:
        tracemalloc.stop()
    return held, peak


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Ledgers of 5,000 and 20,000 trials."""
    home = tmp_path_factory.mktemp("load")
    paths = {}
    for cells in (167, 667):
        trials = big.write(home / str(cells) / "ledger.jsonl", cells)
        paths[trials] = home / str(cells)
    return paths


def test_memory_of_a_ledger_grows_with_its_trials_and_no_faster(ledgers: dict[int, Path]) -> None:
    each = []
    for trials, folder in ledgers.items():
        held, peak = kept_and_peak(lambda folder=folder: read_state(Workspace(folder).ledger, curves=False))
        assert held / trials < 2000, "bytes a trial"
        each.append(peak / trials)
    assert each[1] < 1.2 * each[0], "bytes a trial at the peak, of the smaller and the larger ledger"
    trials, folder = next(iter(ledgers.items()))
    assert kept_and_peak(lambda: read_state(Workspace(folder).ledger))[0] / trials < 5000, "with their curves"


def test_tables_read_a_ledger_as_a_stream(ledgers: dict[int, Path]) -> None:
    each = []
    for trials, folder in ledgers.items():
        held, peak = kept_and_peak(lambda folder=folder: from_records(records_at(folder, curves=False)))
        assert peak / trials < 3500, "bytes a trial: one form of the trials at a time, not two"
        each.append(held / trials)
    assert each[1] < 1.2 * each[0]


def test_every_trial_is_counted(ledgers: dict[int, Path]) -> None:
    for trials, folder in ledgers.items():
        state = read_state(Workspace(folder).ledger, curves=False)
        assert sum(len(state.done(key)) for key in state.cells) == trials
        results = from_records(records_at(folder, curves=False))
        assert sum(len(results.done(key)) for key in state.cells) == trials
        key = next(iter(state.cells))
        found = results.values(key)
        assert found.index.is_monotonic_increasing
        assert found.to_dict() == {
            (trial.fold, trial.repeat): record.accuracy for trial, record in state.trials[key].items()
        }


def test_a_cell_of_a_report_costs_no_more_among_many(tmp_path: Path) -> None:
    """Counted in calls of Python functions; twice as many for ten times the cells would be too many."""
    each = []
    for cells in (30, 300):
        big.write(tmp_path / str(cells) / "ledger.jsonl", cells, folds=2, repeats=1)
        results, calls = from_records(records_at(tmp_path / str(cells))), 0

        def count(frame: object, event: str, value: object) -> None:
            nonlocal calls
            calls += event == "call"

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            made = explorer.payload(results)
        finally:
            sys.setprofile(before)
        assert len(made["rows"]) == cells
        each.append(calls / cells)
    assert 0 < each[1] < 2 * each[0]


def measured(command: str, workspace: Path) -> tuple[dict[str, float], str]:
    done = subprocess.run(
        [sys.executable, str(HERE / "measured.py"), command, str(workspace)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "BENCH_DATA": str(workspace / "data")},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *shown, last = done.stdout.splitlines()
    print(command, last)
    return json.loads(last), "\n".join(shown[-30:])


# Processor seconds and MiB at a million trials: three times what was measured.
BOUNDS = {
    "append": (120, 13_000),
    "status": (150, 5_000),
    "tables": (700, 7_000),
    "report": (750, 7_000),
}


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_a_million_trials(tmp_path: Path) -> None:
    assert big.write(tmp_path / "ledger.jsonl", 33_334) == 1_000_020
    costs = {command: measured(command, tmp_path) for command in BOUNDS}
    assert "1000120 done" in costs["status"][1]  # append added a hundred
    for command, (seconds, memory) in BOUNDS.items():
        assert costs[command][0]["seconds"] < seconds, command
        assert costs[command][0]["memory"] < memory, command


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_ten_thousand_cells_in_mlflows_sqlite(tmp_path: Path) -> None:
    """Written once, and known to be there the second time; a tenth of them first, to see that it stays linear."""
    costs = {}
    for cells in (1_000, 10_000):
        big.write(tmp_path / str(cells) / "ledger.jsonl", cells, folds=10, repeats=1)
        for turn in ("first", "again"):
            costs[cells, turn], shown = measured("sync", tmp_path / str(cells))
            assert f"{cells if turn == 'first' else 0} cells written" in shown
    assert costs[10_000, "first"]["seconds"] < 20 * costs[1_000, "first"]["seconds"]
    assert costs[10_000, "again"]["seconds"] < 0.2 * costs[10_000, "first"]["seconds"]
    assert costs[10_000, "first"]["memory"] < 3_000
