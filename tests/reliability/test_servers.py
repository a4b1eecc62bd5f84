"""MLflow's server and PostgreSQL restarted on the way: a grid or a search ends with all trials, each once."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from optuna.exceptions import StorageInternalError

from bench.execution.serial import SerialPool
from bench.results.workspace import Workspace
from bench.tracking.cells import CELL_TAG, Mirror, sync_mirror
from bench.tracking.run_listener import RunMirror
from bench.tuning.storage import Storage

Make = Callable[..., Path]
METHODS = ("none", "duplicate", "dropedge", "m-mixup", "softedge")


def test_a_grid_goes_on_while_mlflow_and_its_database_are_restarted(
    postgresql: Any, servers: ModuleType, workspace: Make, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, folder = workspace("alone"), workspace("runs")
    grid = tools.grid(METHODS, folds=2)
    assert tools.run(grid, alone)[0] == 0
    tracking = servers.MLflowServer(postgresql.database("tracking"), folder / "artifacts")
    tracking.start()

    mirrors: list[RunMirror] = []
    made, real, calls = RunMirror.__init__, SerialPool.submit, itertools.count()

    def remember(self: RunMirror, *arguments: Any) -> None:
        made(self, *arguments)
        mirrors.append(self)

    def with_restarts(self: SerialPool, *work: Any) -> Future[Any]:
        """The second cell is complete after the seventh trial, the third after the eighth, and so on."""
        number = next(calls)
        if number == 7:
            postgresql.stop()
        if number == 8:
            tools.wait_until(lambda: bool(mirrors[0].missed))
            postgresql.start()
            tracking.stop()
            tracking.start()
        return real(self, *work)

    monkeypatch.setattr(RunMirror, "__init__", remember)
    monkeypatch.setattr(SerialPool, "submit", with_restarts)
    try:
        code, out = tools.run(grid, folder, tracking_uri=tracking.uri)
        assert code == 0, out
        assert out.count("stopped answering") == 1 and "answers again and is complete" in out, out
        assert tools.results(folder) == tools.results(alone)
        # Nothing is left for `bench sync`: each cell is in the store once, with all its trials.
        assert sync_mirror(Workspace(folder), tracking.uri) == (0, len(METHODS))
        mirror = Mirror(tracking.uri, folder)
        runs = mirror.client.search_runs([mirror.experiment("small")])
        assert len(runs) == len({run.data.tags[CELL_TAG] for run in runs}) == len(METHODS)
        assert {run.data.metrics["trials_done"] for run in runs} == {2}
    finally:
        tracking.stop()


@pytest.mark.parametrize("back", [True, False])
def test_a_search_survives_a_restart_of_its_database_or_goes_on_after_it(
    back: bool, postgresql: Any, tuning: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is back before it is asked again is not missed; one that is not ends the search, without loss."""
    cell, url = tuning.cell("dropedge"), postgresql.database(f"studies_{back}".lower())
    undisturbed = tuning.study(Storage(tuning.url(tmp_path)), cell)
    tuning.search([undisturbed])
    asked: list[Mapping[str, Any]] = []

    def restart_on_the_way(work: Mapping[str, Any]) -> float:
        asked.append(work)
        if len(asked) == 10:
            postgresql.stop()
            if back:
                postgresql.start()
        accuracy: float = tuning.pretended(work)
        return accuracy

    study = tuning.study(Storage(url), cell)
    pool = tuning.PretendingPool(answer=restart_on_the_way)
    if back:
        tuning.search([study], pool)
    else:
        with monkeypatch.context() as patched, pytest.raises(StorageInternalError):
            gone = {"host": socket.gethostname(), "pid": os.getpid(), "born": 0.0}  # a process that has ended since
            patched.setattr("bench.tuning.study.own_identity", lambda: gone)
            tuning.search([study], pool)
        assert pool.closed
        with pytest.raises(StorageInternalError), study.storage.lock("turns"):
            pass
        postgresql.start()
        study = tuning.study(Storage(url), cell)
        assert 0 < len(tuning.sequence(study)) < 8
        tuning.search([study])
    assert tuning.sequence(study) == tuning.sequence(undisturbed)
    assert len(tuning.sequence(study)) == 8
