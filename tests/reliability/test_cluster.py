"""Dask workers killed at random and a scheduler that is restarted: the grid ends with all trials, each once."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.execution.dask_cluster import DaskPool

Make = Callable[..., Path]
METHODS = ("none", "dropedge", "m-mixup", "gdm-acc")


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[DaskPool]:
    """The pools that a run makes, so that a test can get at their workers."""
    made: list[DaskPool] = []
    original = DaskPool.__init__

    def remember(self: DaskPool, *arguments: Any) -> None:
        original(self, *arguments)
        made.append(self)

    monkeypatch.setattr(DaskPool, "__init__", remember)
    return made


def worker_pids(pool: DaskPool) -> list[int]:
    found = (worker.pid for worker in list(pool.cluster.workers.values()))
    return [pid for pid in found if pid]


def kill_at_random(pools: list[DaskPool], trials: Callable[[], int], kills: int, pauses: float) -> list[int]:
    """SIGKILL to a random worker, `kills` times, at random moments after the first trial; which processes it was."""
    killed: list[int] = []
    end = time.monotonic() + 600
    while len(killed) < kills and time.monotonic() < end:
        alive = [pid for pid in worker_pids(pools[0]) if pid not in killed] if pools and trials() else []
        if not alive:  # all of them are being restarted
            time.sleep(0.05)
            continue
        killed.append(random.choice(alive))
        os.kill(killed[-1], signal.SIGKILL)
        time.sleep(random.random() * pauses)
    return killed


@pytest.mark.parametrize(
    ("kills", "folds", "repeats", "epochs"), [(2, 3, 1, 60), pytest.param(10, 10, 3, 100, marks=pytest.mark.soak)]
)
def test_workers_killed_at_random_moments_leave_all_trials_each_once(
    kills: int,
    folds: int,
    repeats: int,
    epochs: int,
    workspace: Make,
    tools: ModuleType,
    pools: list[DaskPool],
) -> None:
    grid = tools.grid(METHODS, folds=folds, repeats=repeats, epochs=epochs)
    alone, cluster = workspace("alone"), workspace("cluster")
    assert tools.run(grid, alone)[0] == 0
    killed: list[int] = []
    killer = threading.Thread(
        target=lambda: killed.extend(kill_at_random(pools, lambda: tools.trial_lines(cluster), kills, 4.0))
    )
    killer.start()
    code, out = tools.run(grid, cluster, executor="dask", jobs=2)
    killer.join()
    assert code == 0, out
    assert len(set(killed)) == kills
    assert tools.results(cluster) == tools.results(alone)  # which has each trial once, or it complains


def test_a_trial_that_kills_its_workers_takes_no_other_with_it(
    workspace: Make, tools: ModuleType, misbehaving: str
) -> None:
    """Dask suspects every task that a dead worker had, also those that only waited there."""
    folder = workspace()
    grid = tools.grid([f"{misbehaving}:Dies", "none", "dropedge"], folds=1)
    code, out = tools.run(grid, folder, executor="dask", jobs=2)
    assert code == 1, out
    ends = {name: record.status for name, record in tools.ends(folder).items()}
    assert ends == {"Dies": "failed", "none": "done", "dropedge": "done"}


class Cluster:
    """`dask scheduler` and one `dask worker` as processes, as on a cluster, on a port of their own."""

    def __init__(self, log: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.log = log
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, what: str) -> None:
        words = {
            "scheduler": ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show"],
            "worker": [self.address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"],
        }[what]
        with self.log.open("ab") as log:
            self.processes[what] = subprocess.Popen(
                [sys.executable, "-m", "dask", what, *words], stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, what: str) -> None:
        process = self.processes.pop(what)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@pytest.fixture
def cluster(tmp_path: Path, tools: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("PYTHONPATH", str(tools.ROOT))
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "data"))
    running = Cluster(tmp_path / "dask.log")
    running.start("scheduler")
    tools.wait_until(running.answers)
    running.start("worker")
    yield running
    for what in list(running.processes):
        running.kill(what)


def test_a_scheduler_that_is_restarted_goes_on_with_what_is_left(
    cluster: Cluster, workspace: Make, tools: ModuleType
) -> None:
    grid = tools.grid(METHODS, folds=6, epochs=100, name="custom")
    alone, folder = workspace("alone"), workspace("cluster")
    assert tools.run(grid, alone)[0] == 0

    words = [word for method in METHODS for word in ("-a", method)]
    words += ["-d", "synthetic:graphs=60", "-k", "2", "--folds", "6", "--repeats", "1", "--epochs", "100"]
    process = tools.start(folder, [*words, "--executor", "dask", "--scheduler", cluster.address])
    tools.wait_until(lambda: tools.trial_lines(folder) >= 3)
    cluster.kill("scheduler")
    time.sleep(1)
    cluster.kill("worker")  # it would end by itself: a service manager starts it again
    cluster.start("scheduler")
    cluster.start("worker")
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    said = " ".join(out.split())
    assert "is gone; waiting 120 s for it to come back" in said and "Traceback" not in said, out
    assert tools.results(folder) == tools.results(alone)
