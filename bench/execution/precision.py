"""Adds label draws beyond a grid's own until differences to plain training reach the requested precision.

The stopping rule depends on the width of intervals, never on a p value, so it favors no outcome. All methods of a
column (a dataset, a label rate and a model) get the same draws; columns with the fewest draws come first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bench.plan.cells import Cell, Trial
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.results.ledger import LedgerState

PLAIN = "none"
MOST_DRAWS = 50


@dataclass(frozen=True)
class Precision:
    """The target: half the width of intervals, in points, and the maximum number of label draws per fold."""

    points: float
    most: int = MOST_DRAWS

    def __post_init__(self) -> None:
        if not 0 < self.points < 50:
            raise UserError(f"--precision {self.points:g} is not a width; give percentage points such as 0.5")
        if not 1 <= self.most <= 1000:
            raise UserError(f"--max-repeats {self.most} is not valid; give 1 to 1000")


def asked_precision(points: float | None, most: int | None) -> Precision | None:
    """The width to reach, and where to stop without it."""
    if points is None:
        if most is not None:
            raise UserError(f"--max-repeats {most} limits --precision; add --precision POINTS, or use --repeats")
        return None
    return Precision(points, MOST_DRAWS if most is None else most)


@dataclass(frozen=True)
class Column:
    """The methods of one dataset, label rate and model, with the plain training they are compared with."""

    plain: Cell
    methods: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return (self.plain, *self.methods)

    @property
    def label(self) -> str:
        return f"{self.plain.dataset} k={self.plain.k} {self.plain.model}"

    def draws(self, state: LedgerState, folds: int) -> int:
        """The number of label draws that every cell has tried on every fold."""
        tried = [state.done(cell.key) | set(state.failed(cell.key)) for cell in self.cells]
        draws = 0
        while all(Trial(fold, draws) in trials for trials in tried for fold in range(folds)):
            draws += 1
        return draws

    def fails(self, state: LedgerState) -> bool:
        """Whether some cell was tried and has no results at all, so that more draws would fail too."""
        return any(not state.done(cell.key) and state.failed(cell.key) for cell in self.cells)

    def half_width(self, state: LedgerState) -> float:
        """The widest of the methods' intervals, in points; infinite if one is unknown."""
        return max((_half_width(state, cell, self.plain) for cell in self.methods), default=0.0)


def columns(cells: Iterable[Cell]) -> list[Column]:
    """The columns of a plan; those without plain training have nothing to compare with."""
    found: dict[object, list[Cell]] = {}
    for cell in cells:
        model = (cell.dataset, cell.k, cell.features, cell.splits, cell.model, cell.learner.label, cell.tuned)
        found.setdefault((*model, None if cell.tuned else cell.training), []).append(cell)
    made = []
    for members in found.values():
        plain = [cell for cell in members if _augmenter(cell) == PLAIN]
        methods = tuple(cell for cell in members if _augmenter(cell) != PLAIN)
        if methods and not plain:
            place = f"{members[0].dataset} k={members[0].k} {members[0].model}"
            raise UserError(
                f"--precision applies to differences to plain training, and {place} has none; add -a {PLAIN}"
            )
        if methods:
            made.append(Column(plain[0], methods))
    if not made:
        raise UserError("--precision applies to differences to plain training; add another method, such as -a dropedge")
    return made


def _augmenter(cell: Cell) -> str:
    return (cell.tuned_from or {}).get("augmenter", cell.augmenter.name)


def _half_width(state: LedgerState, cell: Cell, plain: Cell) -> float:
    import pandas as pd

    from tables.statistics import stopping_half_width

    ours, theirs = (
        {trial: record.accuracy for trial, record in state.trials.get(one.key, {}).items() if record.done}
        for one in (cell, plain)
    )
    common = sorted(ours.keys() & theirs.keys())
    index = pd.MultiIndex.from_tuples([(t.fold, t.repeat) for t in common], names=["fold", "repeat"])
    differences = pd.Series([(ours[t] or 0.0) - (theirs[t] or 0.0) for t in common], index=index, dtype=float)
    half = 100 * stopping_half_width(differences)
    return math.inf if math.isnan(half) else half


@dataclass(frozen=True)
class Step:
    """What to add next."""

    plan: Plan
    columns: Sequence[Column]
    open: int  # columns whose intervals are too wide, including waiting ones
    widest: float  # half-width in points

    @property
    def words(self) -> str:
        width = "not known yet" if math.isinf(self.widest) else f"±{self.widest:.1f} points at most"
        place = self.columns[0].label if len(self.columns) == 1 else f"{len(self.columns)} of them"
        many = "one column is" if self.open == 1 else f"{self.open} columns are"
        return f"{many} less precise than asked ({width}); {self.plan.grid.repeats} label draws per fold for {place}"


def next_step(plan: Plan, state: LedgerState, wanted: Precision) -> Step | None:
    """More label draws for the columns with the fewest; None if all are precise enough or at the cap.

    The number follows from the widths, but at most doubles, because widths are estimates too.
    """
    folds = plan.grid.folds
    every = [(column, column.half_width(state)) for column in columns(plan.cells)]
    wide = [(column, half, column.draws(state, folds)) for column, half in every if half > wanted.points]
    able = [found for found in wide if found[2] < wanted.most and not found[0].fails(state)]
    if not able:
        return None
    fewest = min(draws for _, _, draws in able)
    chosen = [(column, half) for column, half, draws in able if draws == fewest]
    more = min(expected_draws(half, fewest, wanted) for _, half in chosen) - fewest
    repeats = min(wanted.most, fewest + max(1, min(more, fewest)))
    cells = tuple(cell for column, _ in chosen for cell in column.cells)
    grown = replace(plan, grid=replace(plan.grid, repeats=repeats), cells=cells, skipped=())
    return Step(grown, [column for column, _ in chosen], len(wide), max(half for _, half, _ in wide))


def expected_draws(half: float, draws: int, wanted: Precision) -> int:
    """How many label draws a column will need: widths shrink with the square root of their number."""
    if math.isinf(half):
        return wanted.most
    return min(wanted.most, max(draws, math.ceil(max(draws, 1) * (half / wanted.points) ** 2)))


def expected_jobs(plan: Plan, state: LedgerState, wanted: Precision) -> tuple[list[tuple[Cell, Trial]], list[Column]]:
    """The additional trials that the recorded widths call for, and the columns without any records."""
    jobs, unknown = [], []
    for column in columns(plan.cells):
        half, draws = column.half_width(state), column.draws(state, plan.grid.folds)
        if math.isinf(half):
            unknown.append(column)
        elif half > wanted.points:
            grown = replace(
                plan, grid=replace(plan.grid, repeats=expected_draws(half, draws, wanted)), cells=column.cells
            )
            own = set(plan.trials)
            jobs += [job for job in grown.pending(state, retry=False) if job[1] not in own]
    return jobs, unknown


def check_precision(plan: Plan) -> None:
    """Reject what can never have an interval: a single fold, or methods without plain training."""
    if plan.grid.folds < 2:
        raise UserError("--precision needs intervals over folds; give --folds 2 or more")
    columns(plan.cells)


def verdict(plan: Plan, state: LedgerState, wanted: Precision) -> str:
    """The final precision of the columns, in one sentence."""
    halves = {column.label: column.half_width(state) for column in columns(plan.cells)}
    wide = {label: half for label, half in halves.items() if half > wanted.points}
    if not wide:
        return f"every difference to plain training is known to ±{wanted.points:g} points"
    label, half = max(wide.items(), key=lambda item: item[1])
    width = "has no interval" if math.isinf(half) else f"is at ±{half:.1f}"
    many = "the column is" if len(halves) == 1 else f"{len(wide)} of {len(halves)} columns are"
    return (
        f"{many} less precise than ±{wanted.points:g} points after "
        f"{wanted.most} label draws per fold; {label} {width}; raise --max-repeats to go on"
    )
