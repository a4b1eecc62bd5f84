"""A run: the plan's missing trials through an executor, each into the ledger, each finished cell into the mirror."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console

from bench.cells import Cell, Trial
from bench.execution.tasks import Executor, bundled
from bench.ledger import Ledger, LedgerState, Record
from bench.planning import Plan, count_done, stamped
from bench.provenance import provenance
from bench.tracking import Mirror
from bench.view import RunView


@dataclass
class Outcome:
    """How a run ended."""

    state: LedgerState
    ran: int = 0
    problems: list[tuple[Cell, Record]] = field(default_factory=list)
    interrupted: bool = False


def run_plan(plan: Plan, ledger: Ledger, mirror: Mirror, executor: Executor, console: Console, retry: bool) -> Outcome:
    """Run what is missing. Interrupted or not, every trial that was reported is in the ledger."""
    origin = announce(plan, ledger)
    outcome, cells = Outcome(ledger.state), {cell.key: cell for cell in plan.cells}
    jobs = plan.pending(ledger.state, retry)
    writer = MirrorWriter(mirror, plan, console)
    writer.expect(jobs)
    done = count_done(plan, ledger.state)
    with RunView(console, done + len(jobs), done) as view:
        try:
            for records in executor.run(bundled(jobs)):
                for record in records:
                    ledger.append({**record, "provenance": origin})
                    outcome.ran += 1
                    cell = cells[record["cell"]]
                    if record["status"] != "done":
                        outcome.problems.append((cell, record))
                    view.finished(record, cell, ledger.state)
                    writer.finished(cell, ledger.state)
        except KeyboardInterrupt:
            outcome.interrupted = True
        finally:
            executor.close()
    if not outcome.interrupted:
        writer.complete(ledger.state)
    return outcome


def announce(plan: Plan, ledger: Ledger) -> str:
    """Write what the ledger does not know yet of this run: its origin, its cells, its plan."""
    origin = provenance()
    if origin["id"] not in ledger.state.provenance:
        ledger.append(origin)
    for cell in plan.cells:
        if cell.key not in ledger.state.cells:
            ledger.append({"type": "cell", "key": cell.key, **cell.to_json()})
    record = plan.record()
    if not any(all(old.get(key) == value for key, value in record.items()) for old in ledger.state.plans):
        ledger.append(stamped(record))
    return str(origin["id"])


class MirrorWriter:
    """Writes each cell to MLflow once it is complete; a server that dies on the way costs one warning."""

    def __init__(self, mirror: Mirror, plan: Plan, console: Console) -> None:
        self.mirror, self.plan, self.console = mirror, plan, console
        self.waiting: dict[str, int] = {}
        self.broken = False

    def expect(self, jobs: Sequence[tuple[Cell, Trial]]) -> None:
        for cell, _ in jobs:
            self.waiting[cell.key] = self.waiting.get(cell.key, 0) + 1

    def finished(self, cell: Cell, state: LedgerState) -> None:
        self.waiting[cell.key] -= 1
        if not self.waiting[cell.key]:
            self.write(cell, state)

    def complete(self, state: LedgerState) -> None:
        """Cells of this plan that needed no trial may be missing from this store or this experiment."""
        for cell in self.plan.cells:
            if cell.key not in self.waiting:
                self.write(cell, state)

    def write(self, cell: Cell, state: LedgerState) -> None:
        from mlflow.exceptions import MlflowException

        if self.broken:
            return
        try:
            self.mirror.write_cell(self.plan.grid.name, cell, state)
        except (MlflowException, OSError) as error:
            self.broken = True
            reason = str(error).splitlines()[0][:200]
            self.console.print(
                f"[yellow]the tracking store {self.mirror.uri} stopped answering ({reason}); "
                "the ledger has everything, `bench sync` completes the store later[/]",
                highlight=False,
            )
