"""Worker processes: the same numbers whatever their number, and what happens when one of them dies."""

from __future__ import annotations

import multiprocessing.context
import os
import runpy
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from bench.execution import nursery
from bench.execution.containment import TaskFailed
from bench.execution.local import LocalPool
from bench.execution.pool import PoolSetup, WorkerLost
from bench.execution.request import RunRequest
from bench.execution.worker import Task, WorkerSettings, bundled, run_task
from bench.plan.planner import Planner
from bench.registry import UserError

Make = Callable[..., Path]


@pytest.fixture
def pool() -> Iterator[LocalPool]:
    made = LocalPool(PoolSetup(WorkerSettings(None, "reference"), 2))
    yield made
    made.close()


def test_the_numbers_are_the_same_in_this_process_and_in_one_or_two_others(workspace: Make, tools: ModuleType) -> None:
    grid = tools.grid(["none", "dropedge", "gdm-acc", "gdm-unc"], k=[2], folds=3, epochs=4)
    assert tools.run(grid, workspace("here"))[0] == 0
    for jobs in (1, 2):
        assert tools.run(grid, workspace(str(jobs)), jobs=jobs)[0] == 0
    here, one, two = (tools.results(workspace(name)) for name in ("here", "1", "2"))
    assert len(here) == 12
    assert here == one == two


def test_a_worker_that_dies_costs_only_the_trial_that_kills_it_each_time(
    workspace: Make, tools: ModuleType, misbehaving: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One trial dies by itself once, beside another that dies each time; it lives when it runs again."""
    monkeypatch.setenv("AUGBENCH_TEST_MARK", str(tmp_path / "mark"))
    folder = workspace()
    grid = tools.grid([f"{misbehaving}:DiesOnce", f"{misbehaving}:DiesBeside", "none"], folds=1)
    code, out = tools.run(grid, folder, jobs=2)
    assert code == 1 and "ended with exit code 9" in out
    ends = tools.ends(folder)
    assert ends["none"].status == ends["DiesOnce"].status == "done"
    assert ends["DiesBeside"].status == "failed"
    assert "exit code 9, 2 times in a row with no other trial beside it" in ends["DiesBeside"].reason
    assert tools.trial_lines(folder) == 3
    assert (tmp_path / "mark").read_text() == ".."


def test_values_and_failures_come_back_and_a_death_takes_nothing_else_with_it(pool: LocalPool) -> None:
    futures = [pool.submit(pow, 2, 10), pool.submit(int, "x"), pool.submit(os._exit, 4), pool.submit(os.abort)]
    futures += [pool.submit(pow, 3, number) for number in range(8)]
    assert futures[0].result(60) == 1024
    with pytest.raises(TaskFailed, match="its worker could not run it: ValueError: invalid literal"):
        futures[1].result(60)
    with pytest.raises(WorkerLost, match="its worker process ended with exit code 4"):
        futures[2].result(60)
    with pytest.raises(WorkerLost, match="its worker process died of SIGABRT"):
        futures[3].result(60)
    assert [future.result(60) for future in futures[4:]] == [3**number for number in range(8)]


def test_what_cannot_be_sent_back_is_a_failure_of_its_own(pool: LocalPool) -> None:
    with pytest.raises(TaskFailed, match="could not run it"):
        pool.submit(os.scandir, ".").result(60)
    assert pool.submit(len, "abc").result(60) == 3


def test_a_worker_starts_when_there_is_something_to_do_and_ends_with_its_pool(pool: LocalPool) -> None:
    me = psutil.Process()
    before = set(me.children(recursive=True))
    pid = pool.submit(os.getpid).result(60)
    started = set(me.children(recursive=True)) - before
    assert pid in {process.pid for process in started} and pool.size == 2
    pool.close()
    assert not any(process.is_running() and process.pid == pid for process in started)
    pool.close()  # again, as after an error


def test_workers_that_cannot_even_start_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.execution.local.serve", pow)  # fails in the worker: not numbers
    pool = LocalPool(PoolSetup(WorkerSettings(None, "reference"), 1))
    try:
        with pytest.raises(UserError, match=r"worker processes end before they start; use `--executor serial`"):
            pool.submit(os.getpid).result(60)
        with pytest.raises(UserError, match="end before they start"):
            pool.submit(os.getpid).result(60)
    finally:
        pool.close()


def test_a_system_without_signal_masks_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask")  # as on Windows
    monkeypatch.delattr(multiprocessing.context, "ForkServerContext")
    runpy.run_path(nursery.__file__)  # importing it does not fail
    with pytest.raises(UserError, match="worker processes need a POSIX system") as error:
        LocalPool(PoolSetup(WorkerSettings(None, "reference"), 1))
    assert len(str(error.value).splitlines()) == 1


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
    assert record.status == "failed"
    assert record.reason.startswith("this worker has torch ") and "where the run has 1.0" in record.reason


def test_a_worker_with_other_data_refuses(tmp_path: Path, tools: ModuleType) -> None:
    plan = Planner(tmp_path, RunRequest.engine).plan(tools.grid(folds=1))
    work = Task(((plan.cells[0], plan.trials[0]),)).to_json()
    work[0]["cell"]["versions"]["dataset"] = "0" * 12
    (record,) = run_task(WorkerSettings(str(tmp_path), RunRequest.engine), work)
    assert record.status == "failed" and "is a different version" in record.reason


def test_an_engine_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown engine 'fats'\. Did you mean: fast"):
        run_task(WorkerSettings(str(tmp_path), "fats"), [])
