"""Predicted times: from the ledger where it has some, from probes where it has none, rather too long than too short."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from bench.cli.dry_run import preview
from bench.execution.request import RunRequest
from bench.plan.cells import Cell, Trial
from bench.plan.forecast import LONG_PROBE_EPOCHS, PROBE_EPOCHS, Forecast, predicted
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord, TrialRecord


@pytest.fixture
def cells(tmp_path: Path) -> dict[int, Cell]:
    """One cell for each label budget, 800 epochs."""
    grid = Grid("g", product(["synthetic"], ["none"], [2, 10, 50]))
    return {cell.k: cell for cell in Planner(tmp_path, "reference").plan(grid).cells}


def trial(train: float, augment: float = 0.0) -> TrialRecord:
    seconds = {"augment": augment, "train": train, "evaluate": 0.5}
    return TrialRecord("c", 0, 0, "done", accuracy=0.5, seconds=seconds)


FAILED = TrialRecord("c", 0, 0, "failed", "boom")


def test_a_measured_cell_takes_what_it_took(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    forecast.learn(cells[2], trial(8.0, 1.0))
    forecast.learn(cells[2], trial(10.0, 1.0))
    assert forecast.seconds(cells[2]) == pytest.approx(9.0 + 1.0 + 0.5)


def test_a_forecast_learns_from_the_finished_trials_of_a_ledger(cells: dict[int, Cell]) -> None:
    cell = cells[2]
    records = [replace(trial(9.5), cell=cell.key), replace(FAILED, cell=cell.key, fold=1)]
    forecast = Forecast.of(LedgerState.of([CellRecord(cell.key, cell), *records]).finished())
    assert forecast.seconds(cell) == pytest.approx(10)


def test_one_trial_that_was_held_up_does_not_count(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    for train in (9.0, 10.0, 3600.0):
        forecast.learn(cells[2], trial(train))
    assert forecast.seconds(cells[2]) == pytest.approx(10.5)
    assert forecast.seconds(replace(cells[2], k=3)) == pytest.approx(10.5 * 3 / 2)


def test_only_training_grows_with_epochs(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    short = replace(cells[2], training=replace(cells[2].training, epochs=8))
    forecast.learn(short, trial(0.08, 3.0))
    assert forecast.seconds(cells[2]) == pytest.approx(0.08 * 100 + 3.5)


def test_between_and_beyond_measured_budgets(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    forecast.learn(cells[10], trial(9.5))
    assert forecast.seconds(cells[2]) == pytest.approx(10)  # never less than the nearest
    assert forecast.seconds(cells[50]) == pytest.approx(50)  # in proportion, for want of a second point
    forecast.learn(cells[2], trial(7.5))
    assert forecast.seconds(replace(cells[2], k=6)) == pytest.approx(9)
    assert forecast.seconds(cells[50]) == pytest.approx(20)  # along the line through both


def test_another_engine_or_dataset_says_nothing(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    forecast.learn(cells[2], trial(1.0))
    assert forecast.seconds(replace(cells[2], dataset="digits")) is None
    assert forecast.seconds(replace(cells[2], versions={**cells[2].versions, "engine": "other"})) is None


def at_rates(prepare: float, epoch: float, ran: list[Cell]) -> Callable[[Cell, Trial], TrialRecord]:
    """An engine that prepares once and then takes as long for each epoch; half a second for the test graphs."""

    def run(cell: Cell, at: Trial) -> TrialRecord:
        ran.append(cell)
        return trial(prepare + epoch * cell.training.epochs)

    return run


def test_probes_are_short_and_only_where_nothing_is_measured(cells: dict[int, Cell]) -> None:
    ran, said, forecast = list[Cell](), list[str](), Forecast()
    run = at_rates(0.0, 0.1, ran)
    assert forecast.probe(cells.values(), run, said.append) == 2
    assert [(cell.k, cell.training.epochs) for cell in ran] == [(2, PROBE_EPOCHS)] * 2 + [(10, PROBE_EPOCHS)]
    assert len(said) == 2
    assert forecast.seconds(cells[10]) == pytest.approx(0.1 * 800 + 0.5)
    assert forecast.probe(cells.values(), run, said.append) == 0


def test_several_probes_at_a_time_share_no_dataset(cells: dict[int, Cell]) -> None:
    under_way, together = set[str](), threading.Barrier(2, timeout=60)
    everything = [replace(cell, dataset=name) for name in ("A", "B") for cell in cells.values()]

    def run(cell: Cell, at: Trial) -> TrialRecord:
        if cell.k == 10:  # not the first training of a process: both datasets have to be under way at once
            assert cell.dataset not in under_way
            under_way.add(cell.dataset)
            together.wait()
            under_way.remove(cell.dataset)
        return trial(100.0)

    said, forecast = list[str](), Forecast()
    assert forecast.probe(everything, run, said.append, jobs=2) == 4
    assert sorted(text.partition(":")[0] for text in said) == [f"probing {n} of 4" for n in (1, 2, 3, 4)]
    assert all(forecast.knows(cell) for cell in everything)


def test_what_training_prepares_is_not_taken_for_epochs(cells: dict[int, Cell]) -> None:
    ran, forecast = list[Cell](), Forecast()
    forecast.probe(cells.values(), at_rates(0.02, 0.0002, ran), lambda text: None)
    assert [cell.training.epochs for cell in ran] == [PROBE_EPOCHS, *[PROBE_EPOCHS, LONG_PROBE_EPOCHS] * 2]
    assert forecast.seconds(cells[10]) == pytest.approx(0.02 + 0.0002 * 800 + 0.5)


def test_the_first_training_of_a_process_does_not_count(cells: dict[int, Cell]) -> None:
    times, forecast = iter([9.0, 0.03, 0.13]), Forecast()
    forecast.probe([cells[10]], lambda cell, at: trial(next(times)), lambda text: None)
    assert forecast.seconds(cells[10]) == pytest.approx(0.02 + 0.001 * 800 + 0.5)


def test_a_second_probe_takes_half_a_second_at_most(cells: dict[int, Cell]) -> None:
    ran, forecast = list[Cell](), Forecast()
    forecast.probe([cells[10]], at_rates(0.0, 0.0101, ran), lambda text: None)
    assert [cell.training.epochs for cell in ran] == [PROBE_EPOCHS, PROBE_EPOCHS, PROBE_EPOCHS + 49]


def test_a_longer_probe_that_was_quicker_leaves_a_positive_time(cells: dict[int, Cell]) -> None:
    times = iter([0.03, 0.03, 0.02])
    forecast = Forecast()
    forecast.probe([cells[10]], lambda cell, at: trial(next(times)), lambda text: None)
    assert 0.5 < (forecast.seconds(cells[10]) or 0) < 0.02 / LONG_PROBE_EPOCHS * 800 + 0.5


def test_a_longer_probe_that_fails_leaves_the_first(cells: dict[int, Cell]) -> None:
    answers = iter([trial(0.03), trial(0.03), FAILED])
    forecast = Forecast()
    forecast.probe([cells[10]], lambda cell, at: next(answers), lambda text: None)
    assert forecast.seconds(cells[10]) == pytest.approx(0.03 * 80 + 0.5)


def test_a_probe_that_fails_is_told_and_its_trials_are_counted(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    forecast.probe(cells.values(), lambda cell, at: FAILED, lambda text: None)
    assert set(forecast.unknown.values()) == {"boom"}
    hours = predicted([(cells[2], Trial(0, 0))], forecast, lambda cell: "m")
    assert hours.unknown == 1 and hours.total == 0


def test_hours_add_up_by_method_and_dataset(cells: dict[int, Cell]) -> None:
    forecast = Forecast()
    forecast.learn(cells[2], trial(1799.5))
    jobs = [(cells[2], Trial(fold, 0)) for fold in range(10)]
    hours = predicted(jobs, forecast, lambda cell: str(cell.augmenter))
    assert hours.by_place == {("none", "synthetic"): pytest.approx(5.0)}
    assert hours.total == pytest.approx(5.0)


def dry_run(
    tools: ModuleType, folder: Path, probe: bool = True, trial_timeout: float | None = None, **options: Any
) -> str:
    out = io.StringIO()
    grid = tools.grid(**options)
    request = RunRequest(grid, folder / "runs", data=folder / "data", jobs=2, trial_timeout=trial_timeout)
    assert preview(request, probe, Console(file=out, width=200)) == 0
    return out.getvalue()


def test_a_dry_run_says_all_and_writes_nothing(tools: ModuleType, tmp_path: Path) -> None:
    datasets = ["synthetic:graphs=60", "PROTEINS"]
    text = dry_run(tools, tmp_path, augmenters=["none", "dropedge"], datasets=datasets, epochs=100)
    assert "grid small: 4 cells, 8 trials; 2 cells cannot run" in text
    assert "cannot run 2 cells: PROTEINS is not in the data root" in text
    assert "a run would stop before it starts" in text
    assert "4 trials to run" in text
    assert "2 cells probed for a few epochs" in text
    assert "predicted minutes of one process" in text and "dropedge" in text
    assert "with --jobs 2" in text
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_goes_by_the_ledger(tools: ModuleType, tmp_path: Path) -> None:
    planned = Planner(tmp_path / "data", RunRequest.engine).plan(tools.grid()).cells[0]
    measured = replace(trial(3599.5), cell=planned.key)
    tools.write_trials(tmp_path / "runs", [CellRecord(planned.key, planned), measured])
    text = dry_run(tools, tmp_path)
    assert "1 trial done already" in text and "1 trial to run" in text
    assert "probed" not in text
    assert "predicted hours of one process" in text and "1.00" in text and "about 30 min with --jobs 2" in text


def test_without_a_probe_it_says_what_is_not_counted(tools: ModuleType, tmp_path: Path) -> None:
    assert "not counted: 2 trials of which nothing is measured yet" in dry_run(tools, tmp_path, probe=False)


def test_a_probe_of_a_method_that_ends_its_process_is_a_line(
    tools: ModuleType, tmp_path: Path, misbehaving: str
) -> None:
    names = [f"{misbehaving}:{name}" for name in ("Exits", "Dies", "Loops")]
    text = dry_run(tools, tmp_path, augmenters=names, trial_timeout=6, epochs=2)
    assert "SystemExit: 3; a method must return" in text
    assert "ended with exit code 9" in text and "took longer than 6 s" in text
    assert "not counted: 6 trials" in text
