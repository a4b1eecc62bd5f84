"""What is sent to a worker and how the worker processes it; the same for every executor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from augmenters import AUGMENTERS
from bench.datasets.paths import data_root
from bench.execution.containment import begin_trial, ending, users_own
from bench.plan.cells import Cell, Trial
from bench.plan.identity import stale_parts
from bench.registry import unknown
from bench.results.records import TrialRecord

Job = tuple[Cell, Trial]


@dataclass(frozen=True)
class Task:
    """Trials that are sent to one worker together, because they share parts worth computing once."""

    jobs: tuple[Job, ...]

    def to_json(self) -> list[dict[str, Any]]:
        return [{"cell": cell.to_json(), "fold": trial.fold, "repeat": trial.repeat} for cell, trial in self.jobs]

    def singles(self) -> list[Task]:
        """The same trials, one task each."""
        return [Task((job,)) for job in self.jobs]


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker needs in addition to the task; without a data root it uses the one of its machine."""

    data_root: str | None
    engine: str
    device: str = "cpu"
    memory: int | None = None  # bytes that all workers of this machine may use together; None: no limit


def bundled(jobs: Iterable[Job]) -> list[Task]:
    """Bundle consecutive jobs of one trial whose methods share a class, so that shared parts are computed once."""
    bundles: dict[Any, list[Job]] = {}
    for cell, trial in jobs:
        family = AUGMENTERS.entry(cell.augmenter.name).target
        where = (
            cell.dataset,
            cell.features,
            cell.splits,
            cell.k,
            cell.model,
            cell.training,
        )
        bundles.setdefault((trial, where, family), []).append((cell, trial))
    return [Task(tuple(bundle)) for bundle in bundles.values()]


_RUNNERS: dict[WorkerSettings, Callable[[Iterable[Job]], list[TrialRecord]]] = {}
# Cluster workers may have several threads; torch's random state and shared parts must be used by one at a time.
_ONE_AT_A_TIME = threading.Lock()


def run_task(settings: WorkerSettings, work: list[dict[str, Any]]) -> list[TrialRecord]:
    """Run a task in this process; the runner is kept, so that a worker loads each dataset once."""
    with _ONE_AT_A_TIME:
        jobs = [(Cell.from_json(item["cell"]), Trial(item["fold"], item["repeat"])) for item in work]
        reason = next(filter(None, (other_versions(cell) for cell, _ in jobs)), None)
        if reason:
            return [failed_record(job, reason) for job in jobs]
        run = _runner(settings)
        return [_attempted(run, job) for job in jobs]


def _attempted(run: Callable[[Iterable[Job]], list[TrialRecord]], job: Job) -> TrialRecord:
    """The record of one trial, even if its method tried to end the process."""
    begin_trial()
    try:
        return run([job])[0]
    except BaseException as error:
        if users_own(error):
            raise
        return failed_record(job, ending(error))


def _runner(settings: WorkerSettings) -> Callable[[Iterable[Job]], list[TrialRecord]]:
    import torch

    # One thread per worker: small graphs gain nothing from more, and sums keep their order.
    torch.set_num_threads(1)
    if settings not in _RUNNERS:
        from bench.execution.trial import TrialRunner, engines

        if settings.engine not in engines():
            raise unknown("engine", settings.engine, engines())
        engine = engines()[settings.engine]()
        runner = TrialRunner(data_root(settings.data_root), engine, settings.device, settings.memory)
        _RUNNERS[settings] = runner.run
    return _RUNNERS[settings]


def other_versions(cell: Cell) -> str | None:
    """Why this process must not run a cell: its code differs from the version in the cell's key."""
    for part, (planned, here) in stale_parts(cell).items():
        return f"this worker has {part} {here} where the run has {planned}; install the same versions everywhere"
    return None


def failed_record(job: Job, reason: str) -> TrialRecord:
    """The record of a trial that could not run at all."""
    cell, trial = job
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return TrialRecord(cell.key, trial.fold, trial.repeat, "failed", reason, finished=now)
