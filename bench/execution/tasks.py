"""What is sent to a worker and what a worker does with it; the same for every executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from augmenters import AUGMENTERS
from bench.cells import Cell, Trial
from bench.ledger import Record

Job = tuple[Cell, Trial]


@dataclass(frozen=True)
class Task:
    """Some trials that go to one worker together, because they share parts worth computing once."""

    jobs: tuple[Job, ...]

    def to_json(self) -> list[dict[str, Any]]:
        return [{"cell": cell.to_json(), "fold": trial.fold, "repeat": trial.repeat} for cell, trial in self.jobs]


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker needs to know beside the task."""

    data_root: str
    engine: str
    device: str = "cpu"


class Executor(Protocol):
    """Runs tasks and yields each one's records as it ends, in any order."""

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Record]]: ...

    def close(self) -> None:
        """End the workers at once; what they were doing is lost."""


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
            cell.backbone.label,
            cell.readout.label,
            cell.training,
        )
        bundles.setdefault((trial, where, family), []).append((cell, trial))
    return [Task(tuple(bundle)) for bundle in bundles.values()]


_RUNNERS: dict[WorkerSettings, Callable[[Iterable[Job]], list[Record]]] = {}


def run_task(settings: WorkerSettings, work: list[dict[str, Any]]) -> list[Record]:
    """Do a task in this process; the runner stays, so that a worker loads a dataset once."""
    if settings not in _RUNNERS:
        import torch

        from bench.trials import TrialRunner, engines

        # One thread a worker: small graphs gain nothing from more, and the sums keep their order.
        torch.set_num_threads(1)
        runner = TrialRunner(Path(settings.data_root), engines()[settings.engine](), settings.device)
        _RUNNERS[settings] = runner.run
    jobs = [(Cell.from_json(item["cell"]), Trial(item["fold"], item["repeat"])) for item in work]
    return _RUNNERS[settings](jobs)


def failed_records(task: Task, reason: str) -> list[Record]:
    """The records of a task whose worker died with it."""
    from datetime import UTC, datetime

    now = datetime.now(UTC).isoformat(timespec="seconds")
    return [
        {
            "type": "trial",
            "cell": cell.key,
            "fold": trial.fold,
            "repeat": trial.repeat,
            "status": "failed",
            "reason": reason,
            "finished": now,
        }
        for cell, trial in task.jobs
    ]
