"""Merge the ledgers of separate machines. Two results for the same trial must be equal, whoever produced them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.plan.cells import Trial
from bench.registry import UserError
from bench.results.ledger import Ledger, LedgerState
from bench.results.records import RESULT, CellRecord, Record, TrialRecord
from bench.results.workspace import Workspace, records_at


@dataclass(frozen=True)
class Merged:
    """What a merge added to its target."""

    cells: int
    trials: int


def merge_ledgers(sources: Sequence[Path], into: Workspace) -> Merged:
    """Add to a workspace what it lacks of the others; all or nothing. Repeating a merge changes nothing."""
    states = {path: LedgerState.of(records_at(path)) for path in sources}
    into.prepare()
    with Ledger(into.ledger) as ledger:
        refuse_contradictions({into.ledger: ledger.state, **states})
        new: list[Record] = []
        seen = LedgerState.of(ledger.state.records())
        for state in states.values():
            for record in _missing(state, seen):
                new.append(record)
                seen.take(record)
        ledger.append_all(new)
    return Merged(sum(isinstance(r, CellRecord) for r in new), sum(isinstance(r, TrialRecord) for r in new))


def joined(sources: Sequence[Path]) -> LedgerState:
    """The combined content of several sources, in memory; two different results for one trial are an error."""
    states = {path: LedgerState.of(records_at(path)) for path in sources}
    if len(states) == 1:
        return next(iter(states.values()))
    refuse_contradictions(states)
    found = LedgerState()
    for state in states.values():
        for record in _missing(state, found):
            found.take(record)
    return found


def _missing(state: LedgerState, target: LedgerState) -> list[Record]:
    """What the target lacks: a result takes precedence over a failure, and failures are interchangeable."""
    new: list[Record] = [record for key, record in state.provenance.items() if key not in target.provenance]
    new += [CellRecord(key, cell) for key, cell in state.cells.items() if key not in target.cells]
    new += [record for record in state.plans if record not in target.plans]
    for key, trials in state.trials.items():
        known, done = target.trials.get(key, {}), target.done(key)
        for trial, record in sorted(trials.items()):
            if trial not in known or (record.done and trial not in done):
                new.append(record)
    return new


def refuse_contradictions(states: dict[Path, LedgerState]) -> None:
    """One error with the first trial that has two results, and how many there are."""
    results: dict[tuple[str, Trial], tuple[Path, TrialRecord]] = {}
    found: list[str] = []
    for path, state in states.items():
        found += [f"{path} has trials of the cell {key} and no line that describes it" for key in state.undescribed()]
        for key, trials in state.trials.items():
            for trial in sorted(state.done(key)):
                where, other = results.setdefault((key, trial), (path, trials[trial]))
                unlike = _unlike(trials[trial], other)
                if unlike:
                    label = state.cells[key].label if key in state.cells else "a cell that is not described"
                    found.append(
                        f"{label} (cell {key[:8]}), fold {trial.fold}, repeat {trial.repeat}: "
                        f"{unlike} is {getattr(other, unlike)} in {where} and "
                        f"{getattr(trials[trial], unlike)} in {path}"
                    )
    if found:
        more = f" and {len(found) - 1} more contradictions" if len(found) > 1 else ""
        raise UserError(
            f"cannot merge: {found[0]}{more}; nothing was written. Find out which is right, and leave out the other"
        )


def _unlike(one: TrialRecord, other: TrialRecord) -> str | None:
    """The first value in which two results differ, apart from times and provenance."""
    return next((name for name in RESULT if getattr(one, name) != getattr(other, name)), None)
