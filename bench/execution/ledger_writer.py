"""The listener that makes a run durable: every finished trial is on disk before any other listener is notified."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bench.execution.events import Event, Finished, Planned
from bench.plan.planner import Plan
from bench.results.ledger import Ledger
from bench.results.provenance import provenance
from bench.results.records import CellRecord, PlanRecord, Record


class LedgerWriter:
    """Writes the plan of a run, then each of its trials."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.origin = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned):
            self.origin = announce(event.plan, self.ledger)
        elif isinstance(event, Finished):
            event.record.provenance = self.origin
            self.ledger.append(event.record)


def announce(plan: Plan, ledger: Ledger) -> str:
    """Write what the ledger does not know yet about this run: its provenance, its cells, its plan."""
    origin = provenance()
    new: list[Record] = [] if origin.id in ledger.state.provenance else [origin]
    new += [CellRecord(cell.key, cell) for cell in plan.cells if cell.key not in ledger.state.cells]
    record = PlanRecord.of(plan)
    if not any(replace(old, at=None) == record for old in ledger.state.plans):
        new.append(replace(record, at=datetime.now(UTC).isoformat(timespec="seconds")))
    ledger.append_all(new)
    return origin.id
