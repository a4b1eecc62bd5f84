"""Searches for the tests of tuning: cells, studies, workers that only pretend to train, and whole commands."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.cli.tune_report import tune_and_report
from bench.execution.driver import Clock
from bench.execution.pool import Pool, WorkerLost
from bench.execution.request import RunRequest
from bench.plan.cells import Cell
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.tuning.request import TuneRequest
from bench.tuning.space import space_for
from bench.tuning.storage import Storage
from bench.tuning.study import Extent, MethodStudy, Search, extents, turns_of
from bench.tuning.tuner import Tuner
from tables.specs import Coordinate

ROOT = Path(__file__).resolve().parents[2]
DATASET = "synthetic:graphs=60"
FOLDS = 4
POOLED = Extent(tuple(range(FOLDS)), 1, pooled=True)
SHARED = ("executor", "jobs", "tracking_uri", "engine", "trial_timeout")  # with `bench run`


def cell(augmenter: str = "dropedge", backbone: str = "gcn", k: int = 2, **training: Any) -> Cell:
    """A cell of the built-in data."""
    at = Coordinate(DATASET, k, augmenter, backbone)
    settings = preset("quick").with_settings({"epochs": 2, **training})
    return Planner(Path("nowhere"), "fast").cell(at, settings)


def url(folder: Path) -> str:
    return f"sqlite:///{(folder / 'tuning.db').as_posix()}"


def study(
    storage: Storage, of: Cell, trials: int = 8, narrowing: Mapping[str, str] | None = None, **search: Any
) -> MethodStudy:
    """A pooled study: several trainings in each trial give the pruner something to judge."""
    return MethodStudy(storage, of, space_for(of, narrowing or {}), POOLED, "budget", Search(trials, **search))


def by_fold(
    storage: Storage, of: Cell, trials: int = 8, narrowing: Mapping[str, str] | None = None, **search: Any
) -> list[MethodStudy]:
    """The studies of each fold."""
    space, search_for = space_for(of, narrowing or {}), Search(trials, **search)
    return [MethodStudy(storage, of, space, extent, "budget", search_for) for extent in extents(FOLDS, 1, pooled=False)]


def pretended(work: Mapping[str, Any]) -> float:
    """An accuracy that likes one learning rate, and folds that differ in difficulty."""
    away = math.log(work["cell"]["training"]["lr"] / 0.004)
    return round(0.4 + 0.4 * math.exp(-away * away) + 0.05 * (work["fold"] % 3), 6)


class PretendingPool(Pool):
    """Workers without training; `answer` may say otherwise for a fold, or raise WorkerLost."""

    def __init__(self, size: int = 1, answer: Callable[[Mapping[str, Any]], Any] = pretended) -> None:
        self._size, self.answer = size, answer
        self.works: list[dict[str, Any]] = []
        self.closed = False

    @property
    def size(self) -> int:
        return self._size

    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        work = payload[-1]
        self.works.append(work)
        future: Future[Any] = Future()
        try:
            found = self.answer(work)
            future.set_result(found if isinstance(found, dict) else {"status": "done", "accuracy": found})
        except WorkerLost as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        self.closed = True


def search(studies: Sequence[MethodStudy], pool: PretendingPool | None = None, deadline: float | None = None) -> None:
    """Run the driver over pretending workers."""
    Tuner(studies, "budget", pool or PretendingPool(), Clock(), deadline=deadline).run()


def sequence(study: MethodStudy) -> list[tuple[int, str, float | None, dict[str, Any]]]:
    """What a study tried, turn by turn, without times."""
    found = turns_of(study.study)
    return [(n, t.state.name, t.value, t.user_attrs["augbench"]["settings"]) for n, t in found.items()]


def grid(augmenters: Sequence[str] = ("none", "dropedge"), folds: int = 3, epochs: int = 2, **more: Any) -> Grid:
    cells = product([DATASET], augmenters, [2])
    return replace(Grid("small", cells, folds=folds, repeats=1, training={"epochs": epochs}), **more)


def tune(grid: Grid, workspace: Path, trials: int = 3, **options: Any) -> tuple[int, str]:
    """`bench tune` in this process; exit code and what it printed."""
    out = io.StringIO()
    how = {} if "jobs" in options or "executor" in options else {"executor": "serial"}
    shared = how | {name: options.pop(name) for name in SHARED if name in options}
    search = Search(trials, **{name: options.pop(name) for name in ("sampler", "pruner", "seed") if name in options})
    run = RunRequest(grid, workspace, data=workspace.parent / "data", **shared)
    return tune_and_report(TuneRequest(run, search, **options), Console(file=out, width=250)), out.getvalue()


def start(workspace: Path, arguments: Sequence[str]) -> subprocess.Popen[str]:
    """`bench tune` as a process of its own."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    data = str(workspace.parent / "data")
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from bench.cli.app import main; main()",
            "tune",
            "--workspace",
            str(workspace),
            *arguments,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "BENCH_DATA": data},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
