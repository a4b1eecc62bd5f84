"""The contents of a workspace in the terminal: the state of each cell, and methods side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.markup import escape
from rich.text import Text

from bench.cli.cell_table import cell_lines
from bench.cli.progress import output
from bench.learning.fast.ops.compiled import compiled_status
from bench.plan.cells import PARTS, TUNED_ON, Cell
from bench.plan.planner import Plan
from bench.plan.staleness import Here
from bench.results.ledger import LedgerState
from bench.results.records import TrialRecord
from bench.results.summary import accuracies_of, collapsed_share, mean_and_spread, ordered_trials
from bench.results.workspace import records_at
from bench.words import counted
from tables.specs import Coordinate

if TYPE_CHECKING:
    from tables.completeness import Share

_PLACED = ("augmenter", "backbone", "readout", "learner")
COUNTED = ("done", "failed", "stale", "missing")


def comparison(plan: Plan, state: LedgerState) -> Group:
    """Methods by dataset and label budget with their differences to plain training, and the conclusion."""
    from tables.conclusion import conclude
    from tables.terminal import run_notes, run_table

    found = conclude(plan.cells, lambda key: ordered_trials(state, key), method_namer(plan.cells))
    notes = "; ".join(run_notes(found))
    judged = " or ".join(dict.fromkeys(cell.metric or "accuracy" for cell in plan.cells))
    return Group(
        Text(f"mean test {judged} in %"),
        run_table(found, len(plan.trials)),
        *([Text(notes)] if notes else []),
        Text(_caption(plan, state)),
        Text(found.sentence(), "bold"),
    )


def method_namer(cells: Sequence[Cell]) -> Callable[[Cell], str]:
    """Row names: the augmenter, plus the model if cells differ in it or it is not a network."""

    def model(cell: Cell) -> str:
        base = cell.tuned_from or {}
        if cell.backbone is None:
            return base.get("learner", cell.learner.label)
        return f"{base.get('backbone', cell.backbone.label)}, {cell.readout}"

    varied = len({model(cell) for cell in cells}) > 1
    trained = len({cell.training.preset for cell in cells}) > 1

    def name(cell: Cell) -> str:
        return f"{method(cell)}, {cell.training.preset}" if trained else method(cell)

    def method(cell: Cell) -> str:
        base = cell.tuned_from or {}
        augmenter = base.get("augmenter", cell.augmenter.label)
        tuned = f", {_tuned_words(cell.tuned_how)}" if base else ""
        if cell.backbone is None and augmenter == "none":
            return f"{model(cell)}{tuned}"
        named = varied or cell.backbone is None
        return f"{augmenter}{tuned} ({model(cell)})" if named else f"{augmenter}{tuned}"

    return name


def _tuned_words(how: str | None) -> str:
    """How a cell was tuned, for the name of its row; records without this note date from when all tuning was pooled."""
    return "tuned" if how == "nested" else "tuned (pooled)"


def _caption(plan: Plan, state: LedgerState) -> str:
    training = plan.cells[0].training
    kinds = ", ".join(
        sorted({f"{cell.dataset}: {cell.splits} splits, {cell.features} features" for cell in plan.cells})
    )
    draws = [1 + max((t.repeat for t in state.done(cell.key)), default=plan.grid.repeats - 1) for cell in plan.cells]
    span = str(min(draws)) if min(draws) == max(draws) else f"{min(draws)} to {max(draws)}"
    trials = f"{plan.grid.folds} folds x {span} label draws"
    tuning = "".join(f"; {TUNED_ON[how]}" for how in sorted({c.tuned_how or "pooled" for c in plan.cells if c.tuned}))
    return f"{trials}, preset {training.preset}, {training.epochs} epochs; {kinds}{tuning}"


def print_status(source: Path, data: Path, console: Console | None = None) -> None:
    """One row per cell of a workspace, ledger or archive, the totals, and the failures by reason."""
    state, console = LedgerState.of(records_at(source, curves=False)), console or output()
    planned, here = state.planned(), Here(data)
    sums = dict.fromkeys(COUNTED, 0)
    rows: list[dict[str, str]] = []
    for key, cell in state.cells.items():
        done, failed = state.done(key), state.failed(key)
        stale = len(done) if here.differs(cell) else 0
        missing = len(planned.get(key, set()) - done - set(failed))
        counts = dict(zip(COUNTED, (len(done), len(failed), stale, missing), strict=True))
        sums = {name: sums[name] + count for name, count in counts.items()}
        trials = ordered_trials(state, key)
        mean, _ = mean_and_spread(accuracies_of(trials))
        names = {part: cell.part_label(part) for part in PARTS}
        if cell.tuned:
            names["augmenter"] += f", {_tuned_words(cell.tuned_how)}"
        share = collapsed_share(trials)
        row = {"cell": key[:8], "dataset": cell.dataset, "k": str(cell.k), **names}
        row |= {name: str(count) for name, count in counts.items()}
        row["accuracy"] = f"{100 * mean:.1f}" if done else ""
        row["collapsed"] = "" if math.isnan(share) else f"{100 * share:.0f}%"
        rows.append(row)
    console.print("\n".join(cell_lines(rows, console.width)), highlight=False, soft_wrap=True)
    words = ", ".join(f"{count} {name}" for name, count in sums.items())
    console.print(f"{counted(len(state.cells), 'cell')}; trials: {words}", highlight=False)
    for found in grid_shares(state):
        console.print(found.words, highlight=False, soft_wrap=True)
    if sums["stale"]:
        console.print(
            "stale: measured with other versions than those here; `bench why CELL` says which", highlight=False
        )
    for how in sorted({cell.tuned_how or "pooled" for cell in state.cells.values() if cell.tuned}):
        console.print(f"{_tuned_words(how)}: {TUNED_ON[how]}", highlight=False, soft_wrap=True)
    lost = sorted((set(state.trials) | set(planned)) - set(state.cells))
    if lost:
        console.print(
            f"not counted: {counted(len(lost), 'cell')} with trials or in a plan that no line of the ledger describes; "
            f"the first is {escape(lost[0])}; restore those lines from a copy",
            highlight=False,
            soft_wrap=True,
        )
    print_engines(state, console)
    print_failures(state, console)
    console.print(compiled_status(), highlight=False, soft_wrap=True)


def grid_shares(state: LedgerState) -> list[Share]:
    """How much of each whole grid the ledger has, whether or not it was planned."""
    from tables.completeness import shares

    planned = state.planned()
    counts: dict[Coordinate, tuple[int, int]] = {}
    for key, cell in state.cells.items():
        base = cell.tuned_from or {}
        place = Coordinate(cell.dataset, cell.k, *(base.get(part, cell.part_label(part)) for part in _PLACED))
        done = len(state.done(key))
        counts[place] = max(counts.get(place, (0, 0)), (done, len(planned.get(key, ()))))
    return shares((plan.grid for plan in state.plans), counts)


def handed_over(records: Iterable[TrialRecord]) -> Counter[tuple[str, str]]:
    """How many finished trials ran on another engine than requested, by that engine and the reason."""
    return Counter((record.engine or "another engine", record.handed_over) for record in records if record.handed_over)


def print_engines(state: LedgerState, console: Console) -> None:
    """Print each reason why trials did not run on the fast engine, and how often it occurred."""
    found = handed_over(record for trials in state.trials.values() for record in trials.values())
    for (engine, reason), count in found.most_common():
        text = f"{counted(count, 'trial')} ran on {engine}: {reason}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_failures(state: LedgerState, console: Console) -> None:
    """Print each reason once, and how often it occurred."""
    reasons: dict[str, int] = {}
    for key in state.cells:
        for record in state.failed(key).values():
            text = f"{record.status}: {state.cells[key].augmenter.label}: {record.reason}"
            reasons[text] = reasons.get(text, 0) + 1
    for text, count in reasons.items():
        console.print(f"{count} x {escape(text)}", highlight=False, soft_wrap=True)
