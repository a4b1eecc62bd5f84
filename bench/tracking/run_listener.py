"""The listener that copies a run to MLflow: each cell once it is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from bench.execution.events import Done, Event, Finished, Notice, Planned
from bench.plan.cells import Cell
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.tracking.cells import Mirror


class RunMirror:
    """Writes cells to a tracking store.

    A server that becomes unavailable causes one notice; missed cells are tried once more at the end of the run.
    """

    def __init__(self, mirror: Mirror, notify: Callable[[Notice], None]) -> None:
        self.mirror, self.notify = mirror, notify
        self.plan: Plan | None = None
        self.waiting: Counter[str] = Counter()  # number of trials still to come, by cell
        self.missed: list[Cell] = []  # empty as long as the store responds

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned):
            self.plan = event.plan
            self.waiting = Counter(cell.key for cell, _ in event.jobs)
            if event.jobs:
                _ = self.mirror.client  # opened while the first trials run; not at all if there is nothing to write
        elif isinstance(event, Finished):
            self.waiting[event.cell.key] -= 1
            if not self.waiting[event.cell.key]:
                self._write(event.cell, event.state)
        elif isinstance(event, Done) and not event.interrupted:
            self._complete(event.state)

    def _complete(self, state: LedgerState) -> None:
        """Cells of this plan that needed no trials may be missing from this store or experiment."""
        missed, self.missed = self.missed, []
        if missed:
            try:  # from scratch: the store may have incomplete cells
                self.mirror = Mirror(self.mirror.uri, self.mirror.artifacts)
            except UserError:
                return
        untouched = (cell for cell in self._cells() if cell.key not in self.waiting)
        for cell in [*missed, *(cell for cell in untouched if not self.mirror.has(self._grid, cell, state))]:
            self._write(cell, state)
        if missed and not self.missed:
            self.notify(Notice(f"the tracking store {self.mirror.uri} answers again and is complete", warning=False))

    @property
    def _grid(self) -> str:
        return self.plan.grid.name if self.plan else ""

    def _cells(self) -> tuple[Cell, ...]:
        return self.plan.cells if self.plan else ()

    def _write(self, cell: Cell, state: LedgerState) -> None:
        if self.missed:
            self.missed.append(cell)
            return
        try:
            self.mirror.write_cell(self._grid, cell, state)
        except (OSError, UserError) as error:
            self.missed.append(cell)
            reason = str(error).splitlines()[0][:200]
            self.notify(
                Notice(
                    f"the tracking store {self.mirror.uri} stopped answering ({reason}); "
                    "the ledger has everything, `bench sync` completes the store later"
                )
            )
