"""Join the ledgers of separate machines. Two results for one trial must be the same, whoever measured them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan.cells import Trial
from bench.plan.staleness import differences
from bench.registry import UserError
from bench.results.ledger import Ledger, LedgerState, Record
from bench.results.workspace import Workspace, records_at

CIRCUMSTANCES = ("seconds", "finished", "provenance")  # of a measurement; not its result


@dataclass(frozen=True)
class Merged:
    """What a merge added to its target."""

    cells: int
    trials: int


def merge_ledgers(sources: Sequence[Path], into: Workspace) -> Merged:
    """Add to one workspace what it lacks of the others; all or nothing, and nothing the second time."""
    states = {path: LedgerState.of(records_at(path)) for path in sources}
    into.prepare()
    with Ledger(into.ledger) as ledger:
        refuse_contradictions({into.ledger: ledger.state, **states})
        new: list[Record] = []
        seen = LedgerState.of(_all_records(ledger.state))
        for state in states.values():
            for record in _missing(state, seen):
                new.append(record)
                seen.take(record)
        ledger.append_all(new)
    return Merged(sum(r["type"] == "cell" for r in new), sum(r["type"] == "trial" for r in new))


def _all_records(state: LedgerState) -> Iterable[Record]:
    yield from state.provenance.values()
    yield from state.cells.values()
    yield from state.plans
    for trials in state.trials.values():
        yield from trials.values()


def _missing(state: LedgerState, target: LedgerState) -> list[Record]:
    """What the target lacks: a result counts more than a failure, and one failure is as good as another."""
    new = [record for key, record in state.provenance.items() if key not in target.provenance]
    new += [record for key, record in state.cells.items() if key not in target.cells]
    new += [record for record in state.plans if record not in target.plans]
    for key, trials in state.trials.items():
        known, done = target.trials.get(key, {}), target.done(key)
        for trial, record in sorted(trials.items()):
            if trial not in known or (record["status"] == "done" and trial not in done):
                new.append(record)
    return new


def refuse_contradictions(states: dict[Path, LedgerState]) -> None:
    """One error that names the first trial with two results, and how many there are."""
    cells: dict[str, tuple[Path, Record]] = {}
    results: dict[tuple[str, Trial], tuple[Path, Record]] = {}
    found: list[str] = []
    for path, state in states.items():
        for key, cell in state.cells.items():
            where, other = cells.setdefault(key, (path, cell))
            if differences(cell, other):
                found.append(f"the cell {key} is described in two ways in {where} and {path}")
        for key, trials in state.trials.items():
            if key not in state.cells:
                found.append(f"{path} has trials of the cell {key} and no line that describes it")
            for trial in sorted(state.done(key)):
                where, other = results.setdefault((key, trial), (path, trials[trial]))
                unlike = _unlike(trials[trial], other)
                if unlike:
                    label = _label(state, key)
                    found.append(
                        f"{label} (cell {key[:8]}), fold {trial.fold}, repeat {trial.repeat}: "
                        f"{unlike} is {other.get(unlike)} in {where} and {trials[trial].get(unlike)} in {path}"
                    )
    if found:
        more = f" and {len(found) - 1} more contradictions" if len(found) > 1 else ""
        raise UserError(
            f"cannot merge: {found[0]}{more}; nothing was written. Find out which is right, and leave one out"
        )


def _unlike(one: Record, other: Record) -> str | None:
    """The first part of two results that is not the same, times and origin aside."""
    names: dict[str, Any] = dict.fromkeys((*one, *other))
    return next((name for name in names if name not in CIRCUMSTANCES and one.get(name) != other.get(name)), None)


def _label(state: LedgerState, key: str) -> str:
    facts = state.cells.get(key)
    return (
        f"{facts['dataset']} k={facts['k']} {facts['augmenter']['label']}" if facts else "a cell that is not described"
    )
