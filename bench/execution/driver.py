"""A run: the plan's missing trials through an executor, each into the ledger, each finished cell into the mirror."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rich.console import Console
from rich.markup import escape

from bench.cli.progress import RunView
from bench.execution.worker import Executor, bundled
from bench.plan.cells import Cell, Trial
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.results.ledger import Ledger, LedgerState
from bench.results.provenance import provenance
from bench.results.records import CellRecord, PlanRecord, Record
from bench.tracking.cells import Mirror


@dataclass
class Clock:
    """Seconds spent by the driver on each of its duties."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def on(self, duty: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[duty] = self.seconds.get(duty, 0.0) + time.perf_counter() - start


@dataclass
class Outcome:
    """How a run ended."""

    ran: int = 0
    training: float = 0.0  # seconds that the trials took, over all workers
    interrupted: bool = False


@dataclass(frozen=True)
class Run:
    """A plan and all that it is run with."""

    plan: Plan
    ledger: Ledger
    mirror: Mirror
    executor: Executor
    console: Console
    clock: Clock

    def go(self, retry: bool) -> Outcome:
        """Run what is missing. Interrupted or not, every trial that was reported is in the ledger."""
        plan, ledger, clock = self.plan, self.ledger, self.clock
        cells, outcome = {cell.key: cell for cell in plan.cells}, Outcome()
        try:
            with clock.on("ledger"):
                origin = announce(plan, ledger)
            jobs = plan.pending(ledger.state, retry)
            writer = MirrorWriter(self.mirror, plan, self.console)
            writer.expect(jobs)
            with RunView(self.console, expected_trials(plan, ledger.state, jobs)) as view:
                for records in self.executor.run(bundled(jobs)):
                    for record in records:
                        with clock.on("ledger"):
                            record.provenance = origin
                            ledger.append(record)
                        outcome.ran += 1
                        outcome.training += sum(record.seconds.values())
                        cell = cells[record.cell]
                        view.finished(record, cell, ledger.state)
                        with clock.on("MLflow"):
                            writer.finished(cell, ledger.state)
            with clock.on("MLflow"):
                writer.complete(ledger.state)
        except KeyboardInterrupt:
            outcome.interrupted = True
        finally:
            self.executor.close()
        return outcome


def expected_trials(plan: Plan, state: LedgerState, jobs: Sequence[tuple[Cell, Trial]]) -> dict[str, tuple[int, int]]:
    """For each dataset: trials done already, and with those that will run."""
    wanted, counts = set(plan.trials), dict.fromkeys((cell.dataset for cell in plan.cells), (0, 0))
    for cell in plan.cells:
        done, total = counts[cell.dataset]
        here = len(state.done(cell.key) & wanted)
        counts[cell.dataset] = (done + here, total + here)
    for cell, _ in jobs:
        done, total = counts[cell.dataset]
        counts[cell.dataset] = (done, total + 1)
    return counts


def announce(plan: Plan, ledger: Ledger) -> str:
    """Write what the ledger does not know yet of this run: its origin, its cells, its plan."""
    origin = provenance()
    new: list[Record] = [] if origin.id in ledger.state.provenance else [origin]
    new += [CellRecord(cell.key, cell) for cell in plan.cells if cell.key not in ledger.state.cells]
    record = PlanRecord.of(plan)
    if not any(replace(old, at=None) == record for old in ledger.state.plans):
        new.append(replace(record, at=datetime.now(UTC).isoformat(timespec="seconds")))
    ledger.append_all(new)
    return origin.id


class MirrorWriter:
    """Writes each cell to MLflow once it is complete.

    A server that dies on the way costs one warning; what it missed is tried once more at the end of the run.
    """

    def __init__(self, mirror: Mirror, plan: Plan, console: Console) -> None:
        self.mirror, self.plan, self.console = mirror, plan, console
        self.waiting: dict[str, int] = {}
        self.missed: list[Cell] = []  # none as long as the store answers

    def expect(self, jobs: Sequence[tuple[Cell, Trial]]) -> None:
        for cell, _ in jobs:
            self.waiting[cell.key] = self.waiting.get(cell.key, 0) + 1

    def finished(self, cell: Cell, state: LedgerState) -> None:
        self.waiting[cell.key] -= 1
        if not self.waiting[cell.key]:
            self.write(cell, state)

    def complete(self, state: LedgerState) -> None:
        """Cells of this plan that needed no trial may be missing from this store or this experiment."""
        missed, self.missed = self.missed, []
        if missed:
            try:  # anew: what the store holds of a cell that was half written is not known
                self.mirror = Mirror(self.mirror.uri, self.mirror.artifacts)
            except UserError:
                return
        for cell in [*missed, *(cell for cell in self.plan.cells if cell.key not in self.waiting)]:
            self.write(cell, state)
        if missed and not self.missed:
            self.console.print(f"the tracking store {self.mirror.uri} answers again and is complete", highlight=False)

    def write(self, cell: Cell, state: LedgerState) -> None:
        from mlflow.exceptions import MlflowException

        if self.missed:
            self.missed.append(cell)
            return
        try:
            self.mirror.write_cell(self.plan.grid.name, cell, state)
        except (MlflowException, OSError) as error:
            self.missed.append(cell)
            reason = str(error).splitlines()[0][:200]
            self.console.print(
                f"[yellow]the tracking store {self.mirror.uri} stopped answering ({escape(reason)}); "
                "the ledger has everything, `bench sync` completes the store later[/]",
                highlight=False,
                soft_wrap=True,
            )
