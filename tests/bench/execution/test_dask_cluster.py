"""Trials on a Dask cluster that is there already, and what is told when there is none."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from bench.execution.containment import TaskFailed
from bench.execution.dask_cluster import DaskPool
from bench.execution.dask_worker import worker_obstacle
from bench.execution.pool import PoolSetup
from bench.execution.request import RunRequest
from bench.execution.worker import WorkerSettings
from bench.plan.planner import Planner
from bench.registry import UserError

Make = Callable[..., Path]
SETTINGS = WorkerSettings(None, RunRequest.engine)


def test_a_cluster_that_is_there_already_runs_with_its_workers_own_data(
    workspace: Make, tools: ModuleType, tiny_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import LocalCluster

    folder, grid = workspace(), tools.grid(["none"], datasets=["TINY"])
    with LocalCluster(n_workers=1, threads_per_worker=3, host="127.0.0.1", dashboard_address=None) as cluster:
        code, out = tools.run(
            grid, folder, executor="dask", scheduler=cluster.scheduler_address, jobs=None, data=tiny_root
        )
        assert code == 0, out
        assert {record["status"] for record in tools.results(folder).values()} == {"done"}
        assert len(cluster.scheduler_info["workers"]) == 1  # it is not ours to close
        # A task that a worker cannot even begin is a failure of its trials, not of the run.
        code, out = tools.run(
            tools.grid(["none"], datasets=["TINY"], folds=1),
            workspace("other"),
            executor="dask",
            scheduler=cluster.scheduler_address,
            jobs=None,
            data=tiny_root,
        )
        assert code == 0, out
        pool = DaskPool(PoolSetup(SETTINGS, 1, cluster.scheduler_address))
        assert pool.size == 3
        with pytest.raises(TaskFailed, match="its worker could not run it: ValueError: invalid literal"):
            pool.submit(int, "x").result(60)
        with pytest.raises(TaskFailed, match="SystemExit: 5; a method must return"):
            pool.submit(sys.exit, 5).result(60)
        assert pool.submit(pow, 2, 5).result(60) == 32
        pool.close()
        # Workers have BENCH_DATA from when they started; the driver plans with what it is told.
        monkeypatch.setenv("BENCH_DATA", "elsewhere")
        plan = Planner(tiny_root, RunRequest.engine).plan(grid)
        cell = plan.cells[0].to_json()
        changed = {**cell, "versions": {**cell["versions"], "torch": "1.0"}}
        setup = PoolSetup(SETTINGS, 1, cluster.scheduler_address, cells=[type(plan.cells[0]).from_json(changed)])
        with pytest.raises(UserError, match=r"cannot be used: this worker has torch .* where the run has 1.0"):
            DaskPool(setup)


def imagined_pool(**cluster: Any) -> DaskPool:
    """Without a cluster, or with one that only says what is told here."""
    with mock.patch("distributed.LocalCluster"), mock.patch("distributed.Client") as client:
        client.return_value.nthreads.return_value = {"tcp://127.0.0.1:1": 1}
        client.return_value.run.return_value = {}
        pool = DaskPool(PoolSetup(SETTINGS, 2))
    pool.cluster = mock.Mock(**cluster) if cluster else None
    pool.client = mock.Mock(status="running", **{"nthreads.return_value": {"tcp://127.0.0.1:1": 1}})
    return pool


def test_workers_that_died_while_they_started_are_replaced_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask gives such workers up, and a local cluster would have none at last."""
    pool = imagined_pool(workers={}, worker_spec={0: {}, 1: {}})
    pool._replace_lost()
    assert not pool.cluster.scale.called  # they may just be starting
    monkeypatch.setattr("bench.execution.dask_cluster.LOST_SECONDS", 0.0)
    pool._replace_lost()
    assert pool.cluster.worker_spec == {}
    pool.cluster.scale.assert_called_once_with(2)
    with pytest.raises(UserError, match=r"22 workers .* died while they started.* use fewer --jobs; .* to resume"):
        for _ in range(10):
            pool.cluster.worker_spec.update({0: {}, 1: {}})
            pool._replace_lost()


def test_a_result_that_is_lost_with_its_worker_is_waited_for_again() -> None:
    """Dask runs such a task once more; for a moment it still counts as finished."""
    future = mock.Mock(status="finished", **{"cancelled.return_value": False, "done.return_value": True})
    future.result.side_effect = [TimeoutError(), "its value"]
    pool = imagined_pool()
    pool.client.submit.return_value = future
    assert pool.submit(pow, 2, 2).result(30) == "its value"
    assert pool.client.submit.call_count == 1 and future.result.call_count == 2
    pool.close()


def test_a_worker_says_why_it_cannot_take_part(tiny_root: Path, tools: ModuleType, tmp_path: Path) -> None:
    cell = Planner(tiny_root, RunRequest.engine).plan(tools.grid(datasets=["TINY"])).cells[0].to_json()
    assert worker_obstacle(WorkerSettings(str(tiny_root), RunRequest.engine), [cell]) is None
    elsewhere = WorkerSettings(str(tmp_path / "elsewhere"), RunRequest.engine)
    reason = worker_obstacle(elsewhere, [{**cell, "dataset": "PROTEINS"}])
    assert reason and "PROTEINS is not in its data root" in reason and "set BENCH_DATA" in reason
    reason = worker_obstacle(WorkerSettings(str(tiny_root), RunRequest.engine), [{**cell, "splits": "CHEMICAL"}])
    assert reason and "CHEMICAL" in reason


def test_without_the_extra_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"needs the package distributed; .*pip install 'augbench\[cluster\]'"):
        DaskPool(PoolSetup(SETTINGS, 1))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nonsense", "nonsense is not an address; write it as tcp://HOST:8786"),
        ("tcp://127.0.0.1", "is not an address"),
        ("tcp://127.0.0.1:99999", "no Dask scheduler answers"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9: .*refused.*`dask scheduler`"),
    ],
)
def test_no_scheduler_there_is_told_at_once(address: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        DaskPool(PoolSetup(SETTINGS, 1, address))


def test_a_scheduler_without_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr("bench.execution.dask_cluster.WORKER_SECONDS", 1)
    said = r"has no worker; start one with `dask worker tcp://127\.0\.0\.1:"
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=None) as cluster,
        pytest.raises(UserError, match=said),
    ):
        DaskPool(PoolSetup(SETTINGS, 1, cluster.scheduler_address))


def test_a_scheduler_that_goes_away_ends_the_run_with_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr("bench.execution.dask_connection.CONNECT_SECONDS", 2)
    monkeypatch.setattr("bench.execution.dask_cluster.RETURN_SECONDS", 1)
    with LocalCluster(n_workers=1, host="127.0.0.1", dashboard_address=None) as cluster:
        pool = DaskPool(PoolSetup(SETTINGS, 1, cluster.scheduler_address))
        future = pool.submit(time.sleep, 600)
        cluster.close()
        with pytest.raises(UserError, match="is gone; finished trials are kept; run the same command again"):
            future.result(60)
        with pytest.raises(UserError, match="is gone"):
            pool.submit(time.sleep, 600).result(60)
    pool.close()


def test_a_port_that_is_no_scheduler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.execution.dask_connection.CONNECT_SECONDS", 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(UserError, match="no Dask scheduler answers"):
            DaskPool(PoolSetup(SETTINGS, 1, f"tcp://127.0.0.1:{port}"))
