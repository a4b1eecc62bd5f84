"""What is sent to a worker and what a worker does with it; the same for every executor."""

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
    """Some trials that go to one worker together, because they share parts worth computing once."""

    jobs: tuple[Job, ...]

    def to_json(self) -> list[dict[str, Any]]:
        return [{"cell": cell.to_json(), "fold": trial.fold, "repeat": trial.repeat} for cell, trial in self.jobs]

    def singles(self) -> list[Task]:
        """The same trials, each by itself."""
        return [Task((job,)) for job in self.jobs]


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker needs to know beside the task; without a data root it takes its machine's own."""

    data_root: str | None
    engine: str
    device: str = "cpu"
    memory: int | None = None  # bytes that all workers of this machine may take together; None: no limit


def bundled(jobs: Iterable[Job]) -> list[Task]:
    """Neighbouring jobs of one trial whose methods share a class go together, so that what they share is made once."""
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
# A cluster's worker may have several threads; torch's random state and what trials share belong to one at a time.
_ONE_AT_A_TIME = threading.Lock()


def run_task(settings: WorkerSettings, work: list[dict[str, Any]]) -> list[TrialRecord]:
    """Do a task in this process; the runner stays, so that a worker loads a dataset once."""
    with _ONE_AT_A_TIME:
        jobs = [(Cell.from_json(item["cell"]), Trial(item["fold"], item["repeat"])) for item in work]
        reason = next(filter(None, (other_versions(cell) for cell, _ in jobs)), None)
        if reason:
            return [failed_record(job, reason) for job in jobs]
        run = _runner(settings)
        return [_attempted(run, job) for job in jobs]


def _attempted(run: Callable[[Iterable[Job]], list[TrialRecord]], job: Job) -> TrialRecord:
    """One trial's record, also of one whose method tried to end the process."""
    begin_trial()
    try:
        return run([job])[0]
    except BaseException as error:
        if users_own(error):
            raise
        return failed_record(job, ending(error))


def _runner(settings: WorkerSettings) -> Callable[[Iterable[Job]], list[TrialRecord]]:
    import torch

    # One thread per worker: small graphs gain nothing from more, and the sums keep their order.
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
    """Why this process must not run a cell: its code is not the one that the cell's key speaks of."""
    for part, (planned, here) in stale_parts(cell).items():
        return f"this worker has {part} {here} where the run has {planned}; install the same versions everywhere"
    return None


def failed_record(job: Job, reason: str) -> TrialRecord:
    """The record of a trial that could not be run at all."""
    cell, trial = job
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return TrialRecord(cell.key, trial.fold, trial.repeat, "failed", reason, finished=now)
