"""Run some finished trials again and compare: a ledger's numbers should come out the same, digit by digit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.datasets import cheap_info
from bench.execution.worker import Task, WorkerSettings, run_task
from bench.plan.cells import Cell, Trial
from bench.plan.staleness import Here
from bench.registry import UserError
from bench.results.ledger import LedgerState, Record
from bench.results.workspace import records_at

COMPARED = ("accuracy", "balanced_accuracy", "macro_f1", "labels")


@dataclass(frozen=True)
class Check:
    """One trial run again."""

    cell: Cell
    trial: Trial
    recorded: Record
    again: Record

    @property
    def same(self) -> bool:
        return self.again["status"] == "done" and all(self.again[m] == self.recorded[m] for m in COMPARED)

    def __str__(self) -> str:
        where = f"{self.cell.label}, fold {self.trial.fold}, repeat {self.trial.repeat}"
        if self.same:
            return f"{where}: {100 * self.recorded['accuracy']:.2f} % again"
        if self.again["status"] != "done":
            return f"{where}: {self.again['status']} ({self.again['reason']})"
        unlike = [m for m in COMPARED if self.again[m] != self.recorded[m]]
        return f"{where}: " + ", ".join(f"{m} {self.recorded[m]} then, {self.again[m]} now" for m in unlike)


@dataclass(frozen=True)
class Candidates:
    """Trials that can be run again here, and how many cannot."""

    trials: list[tuple[Cell, Trial, Record]]
    stale: int

    @classmethod
    def of(cls, path: Path, root: Path) -> Candidates:
        state = LedgerState.of(records_at(path))
        fit: list[tuple[Cell, Trial, Record]] = []
        stale, here = 0, Here(root)
        for key in sorted(state.cells):
            done = sorted(state.done(key))
            if here.differs(state.cells[key]) or not _present(state.cells[key]["dataset"], root):
                stale += len(done)
            else:
                cell = state.cell(key)
                fit += [(cell, trial, state.trials[key][trial]) for trial in done]
        if not fit:
            reason = "all are of other versions or of data that is not here" if stale else "it has no finished trial"
            raise UserError(f"no trial of {path} can be run again: {reason}; `bench status` shows what there is")
        return cls(fit, stale)

    def sample(self, number: int, seed: int) -> list[tuple[Cell, Trial, Record]]:
        """That many of them at random, fewer when there are not as many; the same ones for the same seed."""
        return random.Random(seed).sample(self.trials, min(number, len(self.trials)))


def _present(dataset: str, root: Path) -> bool:
    try:
        return cheap_info(dataset, root).present
    except UserError:  # a dataset that is not known here
        return False


def verify(
    chosen: Sequence[tuple[Cell, Trial, Record]], root: Path, device: str, tell: Callable[[Check], None]
) -> list[Check]:
    """Run the chosen trials again in this process."""
    checks = []
    for cell, trial, recorded in chosen:
        settings = WorkerSettings(str(root), str(cell.versions["engine"]), device)
        again = run_task(settings, Task(((cell, trial),)).to_json())[0]
        checks.append(Check(cell, trial, recorded, again))
        tell(checks[-1])
    return checks
