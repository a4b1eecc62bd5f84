"""A run from its options to its exit code: failures, retries, interruptions, two runs at once."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from bench.cli.progress import PLAIN_LINE_EVERY, TrialBars, duration
from bench.execution.request import RunRequest
from bench.execution.serial import SerialPool
from bench.registry import UserError
from bench.results.ledger import Ledger
from bench.results.records import TrialRecord
from bench.results.workspace import Workspace

Make = Callable[..., Path]


def test_a_run_ends_with_the_comparison_and_a_second_one_has_nothing_to_do(workspace: Make, tools: ModuleType) -> None:
    folder = workspace()
    code, out = tools.run(tools.grid(["none", "m-mixup"]), folder)
    assert code == 0
    assert "2 cells, 4 trials" in out and "m-mixup" in out and "2 folds x 1 label draws" in out
    assert "our own stratified folds" in out
    assert "waiting for planning" in out
    assert len(tools.results(folder)) == 4
    before = Workspace(folder).ledger.read_bytes()
    code, out = tools.run(tools.grid(["none", "m-mixup"]), folder)
    assert code == 0 and "4 trials done already" in out
    assert Workspace(folder).ledger.read_bytes() == before


def test_more_folds_add_to_a_ledger_what_is_missing(workspace: Make, tools: ModuleType) -> None:
    folder = workspace()
    tools.run(tools.grid(folds=1), folder)
    first = tools.results(folder)
    tools.run(tools.grid(folds=3), folder)
    again = tools.results(folder)
    assert len(again) == 3
    assert first.items() <= again.items()


def test_failures_are_lines_with_reasons_and_the_grid_goes_on(
    workspace: Make, tools: ModuleType, misbehaving: str
) -> None:
    folder = workspace()
    names = {kind: f"{misbehaving}:{kind}" for kind in ("Raises", "Exhausts", "Blows")}
    grid = tools.grid([names["Raises"], names["Exhausts"], names["Blows"], "none"])
    code, out = tools.run(grid, folder)
    assert code == 1
    by_method: dict[str, list[TrialRecord]] = {}
    state = tools.state(folder)
    for key, trials in state.trials.items():
        by_method[state.cells[key].augmenter.name] = list(trials.values())
    assert {record.status for record in by_method["none"]} == {"done"}
    assert {(r.status, r.reason) for r in by_method[names["Raises"]]} == {("failed", "RuntimeError: boom [not markup]")}
    assert all(str(r.reason).startswith("out of memory: ") for r in by_method[names["Exhausts"]])
    assert {record.status for record in by_method[names["Blows"]]} == {"diverged"}
    assert "6 trials have no result" in out
    assert "boom [not markup]" in out and "fold 1, repeat 0" in out
    assert "none done" in out


def test_failed_trials_are_tried_again_unless_they_are_to_be_left(
    workspace: Make, tools: ModuleType, misbehaving: str
) -> None:
    folder = workspace()
    grid = tools.grid([f"{misbehaving}:Raises"], folds=1)
    assert tools.run(grid, folder)[0] == 1
    assert tools.trial_lines(folder) == 1
    code, out = tools.run(grid, folder, retry=False)
    assert code == 1 and "1 trial has no result" in out  # left alone, and still told
    assert tools.trial_lines(folder) == 1
    assert tools.run(grid, folder)[0] == 1
    assert tools.trial_lines(folder) == 2


def test_an_interruption_keeps_what_was_finished_and_says_how_to_go_on(
    workspace: Make, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = SerialPool.submit, itertools.count(1)

    def interrupted(self: SerialPool, *work: Any) -> Future[Any]:
        if next(calls) > 3:
            raise KeyboardInterrupt
        return real(self, *work)

    folder, grid = workspace(), tools.grid(["none", "duplicate"], folds=3)
    with monkeypatch.context() as patched:
        patched.setattr(SerialPool, "submit", interrupted)
        code, out = tools.run(grid, folder)
    assert code == 130
    assert "3 trials finished in this run are kept, 3 are left. Run the same command again" in out
    kept = tools.results(folder)
    assert len(kept) == 3
    assert tools.run(grid, folder)[0] == 0
    assert kept.items() <= tools.results(folder).items()
    whole = workspace("whole")
    tools.run(grid, whole)
    assert tools.results(whole) == tools.results(folder)


def test_with_nothing_to_do_no_worker_starts(
    workspace: Make, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, grid = workspace(), tools.grid(folds=1)
    assert tools.run(grid, folder)[0] == 0
    monkeypatch.setattr("bench.execution.local.LocalPool.__init__", None)  # would not be callable
    code, out = tools.run(grid, folder, jobs=1)
    assert code == 0 and "1 trial done already" in out


def test_the_second_run_on_a_workspace_gets_a_clear_message(workspace: Make, tools: ModuleType) -> None:
    folder = workspace()
    with (
        Ledger(Workspace(folder).ledger),
        pytest.raises(UserError, match=r"another process is writing to .*--workspace"),
    ):
        tools.run(tools.grid(), folder)
    assert tools.trial_lines(folder) == 0


def test_a_missing_dataset_stops_before_anything_is_written(tmp_path: Path, tools: ModuleType) -> None:
    grid = tools.grid(datasets=["synthetic:graphs=60", "NCI1"])
    with pytest.raises(UserError, match="bench data fetch NCI1"):
        tools.run(grid, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_skip_unavailable_runs_the_rest_and_the_ledger_says_so(workspace: Make, tools: ModuleType) -> None:
    folder = workspace()
    grid = tools.grid(datasets=["synthetic:graphs=60", "NCI1"])
    code, out = tools.run(grid, folder, skip_unavailable=True)
    assert code == 0 and "cannot run 1 cell: NCI1" in out
    (plan,) = tools.state(folder).plans
    assert [item["cell"]["dataset"] for item in plan.skipped] == ["NCI1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "--jobs 0 is not a valid number of processes"),
        ({"executor": "lsf"}, "unknown executor 'lsf'"),
        ({"scheduler": "tcp://x:1"}, "add --executor dask"),
        ({"scheduler": "tcp://x:1", "executor": "dask", "jobs": 3}, "leave out --jobs or --scheduler"),
        ({"engine": "fats"}, "unknown engine 'fats'. Did you mean: fast"),
        ({"device": "cuda:77"}, "--device cuda:77 cannot be used here"),
        ({"tracking_uri": "http://127.0.0.1:9"}, "the tracking store http://127.0.0.1:9 cannot be used: .*refused"),
    ],
)
def test_options_that_cannot_be_are_one_line_before_the_start(
    tmp_path: Path, tools: ModuleType, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        tools.run(tools.grid(), tmp_path / "runs", **options)
    assert "\n" not in str(error.value)
    assert tools.trial_lines(tmp_path / "runs") == 0


def test_one_process_a_core_unless_said_otherwise(tools: ModuleType) -> None:
    assert RunRequest(tools.grid(), Path("runs")).processes >= 1
    assert RunRequest(tools.grid(), Path("runs"), jobs=7).processes == 7


def test_plain_lines_are_whole_whatever_the_width(workspace: Make, tools: ModuleType) -> None:
    assert PLAIN_LINE_EVERY > 0
    folder = workspace()
    tools.run(tools.grid(folds=1), folder)
    state = tools.state(folder)
    (key,) = state.cells
    out = io.StringIO()
    bars = TrialBars(Console(file=out, width=20), {state.cells[key].dataset: (0, 1)})
    bars.start()
    bars.finished(next(iter(state.trials[key].values())), state.cells[key], state)
    bars.stop()
    (line,) = out.getvalue().splitlines()
    assert line.startswith("1/1 trials, 0 s left, last: synthetic:graphs=60 k=2 none gcn mean: ")


def test_the_live_view_shows_datasets_failures_and_time_left(workspace: Make, tools: ModuleType) -> None:
    folder = workspace()
    tools.run(tools.grid(folds=1), folder)
    state = tools.state(folder)
    (key,) = state.cells
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True)
    bars = TrialBars(console, {"digits": (2, 5), state.cells[key].dataset: (0, 2)})
    bars.start()
    record = next(iter(state.trials[key].values()))
    bars.finished(record, state.cells[key], state)
    bars.finished(replace(record, status="failed", reason="boom"), state.cells[key], state)
    bars.stop()
    text = out.getvalue()
    for words in ("4/7", "2/5", "2/2", "1 failed", "left", "failed (boom)"):
        assert words in text


@pytest.mark.parametrize(("seconds", "words"), [(5, "5 s"), (600, "10 min"), (7200, "2.0 h")])
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
