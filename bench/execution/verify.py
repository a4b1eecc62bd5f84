"""Run some finished trials again and compare: the numbers in the ledger should be reproduced digit by digit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.datasets import cheap_info
from bench.execution.pool import Pool
from bench.execution.suspects import Dispatcher, Failure
from bench.execution.worker import Task, WorkerSettings, failed_record, run_task
from bench.plan.cells import Cell, Trial
from bench.plan.identity import DEFAULT_ENGINE, NO_ENGINE
from bench.plan.staleness import Here
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.results.provenance import provenance
from bench.results.records import RESULT, TrialRecord
from bench.results.verification import Verification, digest
from bench.results.workspace import records_at

Finished = tuple[Cell, Trial, TrialRecord]


@dataclass(frozen=True)
class Check:
    """One trial that was run again."""

    cell: Cell
    trial: Trial
    recorded: TrialRecord
    again: TrialRecord

    @property
    def unlike(self) -> list[str]:
        """The values that were not reproduced, including those of generated graphs and the loss curve.

        Figures that were not recorded at the time are ignored.
        """
        empty: tuple[object, ...] = (None, {}, [])
        pairs = {name: (getattr(self.recorded, name), getattr(self.again, name)) for name in RESULT}
        return [name for name, (then, now) in pairs.items() if then not in empty and then != now]

    @property
    def same(self) -> bool:
        return not self.unlike

    def __str__(self) -> str:
        where = f"{self.cell.label}, fold {self.trial.fold}, repeat {self.trial.repeat}"
        if self.same:
            return f"{where}: {100 * (self.recorded.accuracy or 0):.2f} %, and every other figure"
        if not self.again.done:
            return f"{where}: {self.again.status} ({self.again.reason})"
        figures = (f"{m} {getattr(self.recorded, m)} then, {getattr(self.again, m)} now" for m in self.unlike)
        return f"{where}: " + ", ".join(figures)


@dataclass(frozen=True)
class Candidates:
    """Trials that can be run again here, and how many cannot."""

    trials: list[Finished]
    stale: int
    digest: str  # of all finished trials, including stale ones

    @classmethod
    def of(cls, path: Path, root: Path) -> Candidates:
        state = LedgerState.of(records_at(path))
        fit: list[Finished] = []
        stale, here = 0, Here(root)
        for key in sorted(state.cells):
            done = sorted(state.done(key))
            cell = state.cells[key]
            if here.differs(cell) or not _present(cell.dataset, root):
                stale += len(done)
            else:
                fit += [(cell, trial, state.trials[key][trial]) for trial in done]
        if not fit:
            reason = "all are of other versions or of data that is not here" if stale else "it has no finished trial"
            raise UserError(f"no trial of {path} can be run again: {reason}; `bench status` lists the cells")
        return cls(fit, stale, digest(state))

    def sample(self, number: int, seed: int) -> list[Finished]:
        """A random sample of that many trials, or all if there are fewer; the same seed gives the same sample."""
        return random.Random(seed).sample(self.trials, min(number, len(self.trials)))

    def verification(self, checks: Sequence[Check], seed: int) -> Verification:
        """The record of a completed verification."""
        return Verification(
            datetime.now(UTC).isoformat(timespec="seconds"),
            self.digest,
            len(self.trials) + self.stale,
            self.stale,
            len(checks),
            seed,
            sum(check.same for check in checks),
            tuple(str(check) for check in checks if not check.same),
            provenance().facts,
        )


def _present(dataset: str, root: Path) -> bool:
    try:
        return cheap_info(dataset, root).present
    except UserError:  # a dataset that is unknown here
        return False


def verify(
    chosen: Sequence[Finished], pool: Pool, root: Path, device: str, tell: Callable[[Check], None]
) -> list[Check]:
    """Run the chosen trials again, isolated as in a run; `tell` is called with each result."""

    def call(one: Finished) -> tuple[object, ...]:
        cell, trial, _ = one
        engine = str(cell.versions["engine"])
        # A learner without a network needs no engine, so any worker will do.
        settings = WorkerSettings(str(root), DEFAULT_ENGINE if engine == NO_ENGINE else engine, device)
        return run_task, settings, Task(((cell, trial),)).to_json()

    checks, left = [], iter(chosen)
    for (cell, trial, recorded), result in Dispatcher(pool, call).each(lambda: next(left, None), pool.size):
        again = failed_record((cell, trial), result.reason) if isinstance(result, Failure) else result[0]
        checks.append(Check(cell, trial, recorded, again))
        tell(checks[-1])
    return checks
