"""Worker processes: the same numbers whatever their number, and what happens when one of them dies."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from bench.execution.request import RunRequest
from bench.execution.local import ProcessExecutor
from bench.execution.worker import Task, WorkerSettings, bundled, run_task
from bench.plan.planner import Planner
from bench.registry import UserError

Make = Callable[..., Path]


def test_the_numbers_are_the_same_with_one_process_and_with_two(workspace: Make, tools: ModuleType) -> None:
    grid = tools.grid(["none", "dropedge", "gdm-acc", "gdm-unc"], k=[2], folds=3, epochs=4)
    for jobs in (1, 2):
        assert tools.run(grid, workspace(str(jobs)), jobs=jobs)[0] == 0
    one, two = (tools.results(workspace(str(jobs))) for jobs in (1, 2))
    assert len(one) == 12
    assert one == two


def test_a_worker_that_dies_costs_only_the_trial_that_kills_it_each_time(
    workspace: Make, tools: ModuleType, misbehaving: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One trial is killed with its neighbour's worker, dies by itself when it is judged alone, and lives then."""
    once, always = "DiesAlone", "DiesBeside"
    monkeypatch.setenv("AUGBENCH_TEST_MARK", str(tmp_path / "mark"))
    folder = workspace()
    grid = tools.grid([f"{misbehaving}:{once}", f"{misbehaving}:{always}", "none"], folds=1)
    code, out = tools.run(grid, folder, jobs=2)
    assert code == 1 and "try fewer --jobs" in out
    assert (tmp_path / "mark").exists()
    state = tools.state(folder)
    ends = {
        state.cells[key]["augmenter"]["name"].rpartition(":")[2]: record
        for key, trials in state.trials.items()
        for record in trials.values()
    }
    assert ends["none"]["status"] == ends[once]["status"] == "done"
    assert ends[always]["status"] == "failed" and "worker process died twice" in ends[always]["reason"]
    assert tools.trial_lines(folder) == 3


def test_workers_that_cannot_even_start_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.execution.local._begin", os.fspath)  # fails in the worker: not a path
    executor = ProcessExecutor(WorkerSettings(None, "reference"), 1)
    with pytest.raises(UserError, match="worker processes end before they start; run with --jobs 1"):
        list(executor.run([]))
    executor.close()


def test_methods_of_one_trial_that_share_a_class_go_together(tmp_path: Path, tools: ModuleType) -> None:
    grid = tools.grid(["gdm-acc", "none", "gdm-unc", "gdm-rand"], folds=2, k=[2, 3])
    plan = Planner(tmp_path, RunRequest.engine).plan(grid)
    jobs = [(cell, trial) for trial in plan.trials for cell in plan.cells]
    tasks = bundled(jobs)
    assert sorted(len(task.jobs) for task in tasks) == [1] * 4 + [3] * 4
    for task in tasks:
        assert len({(cell.k, trial) for cell, trial in task.jobs}) == 1
    assert [single.jobs for single in tasks[0].singles()] == [(job,) for job in tasks[0].jobs]


def test_a_worker_with_other_versions_refuses(tmp_path: Path, tools: ModuleType) -> None:
    plan = Planner(tmp_path, RunRequest.engine).plan(tools.grid(folds=1))
    work = Task(((plan.cells[0], plan.trials[0]),)).to_json()
    work[0]["cell"]["versions"]["torch"] = "1.0"
    (record,) = run_task(WorkerSettings(str(tmp_path), RunRequest.engine), work)
    assert record["status"] == "failed"
    assert record["reason"].startswith("this worker has torch ") and "where the run has 1.0" in record["reason"]


def test_a_worker_with_other_data_refuses(tmp_path: Path, tools: ModuleType) -> None:
    plan = Planner(tmp_path, RunRequest.engine).plan(tools.grid(folds=1))
    work = Task(((plan.cells[0], plan.trials[0]),)).to_json()
    work[0]["cell"]["versions"]["dataset"] = "0" * 12
    (record,) = run_task(WorkerSettings(str(tmp_path), RunRequest.engine), work)
    assert record["status"] == "failed" and "is another version" in record["reason"]


def test_an_engine_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown engine 'fats'\. Did you mean: fast"):
        run_task(WorkerSettings(str(tmp_path), "fats"), [])
