"""A ledger as tidy pandas frames: one row per trial, retries resolved, with the planned number of trials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.cells import PARTS, TUNED_ON, Cell
from bench.protocol.seeds import weights_name
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.results.records import SCORES, Record, TrialRecord, parse
from bench.results.summary import has_collapsed

BY_FOLD = "by fold"
TUNING = ("tuned", "tuned_from", "tuned_how", "tuned_on")
FALLBACK = "generated.fallback_"  # columns of fallbacks that a method recorded
NESTED = ("seconds", "generated", "predicted", "scores")  # nested figures of a trial: `seconds.train`, ...


@dataclass
class Results:
    """Everything that tables need: cells by key, trials, the plan, skipped cells, and the code that was used."""

    cells: pd.DataFrame  # index: key; columns: dataset, k, features, augmenter (label), training.epochs, ...
    trials: pd.DataFrame  # cell, fold, repeat, status, reason, accuracy, ..., seconds.train, generated.count, ...
    planned: dict[str, frozenset[tuple[int, int]]]
    skipped: list[dict[str, Any]] = field(default_factory=list)
    provenance: list[dict[str, Any]] = field(default_factory=list)
    grids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        done = self.trials[self.trials["status"] == "done"] if len(self.trials) else self.trials
        # Sorted by cell, so that each cell is a slice: a separate frame for each of many cells would take gigabytes.
        self._done = done.sort_values(["cell", "fold", "repeat"]).set_index(["fold", "repeat"])
        cells = self._done["cell"].to_numpy(dtype=object)
        edges = [0, *(np.flatnonzero(cells[1:] != cells[:-1]) + 1), len(cells)] if len(cells) else []
        self._slices = {str(cells[start]): slice(start, end) for start, end in pairwise(edges)}
        self._values: dict[tuple[str | None, str], pd.Series[float]] = {}

    @classmethod
    def from_state(cls, state: LedgerState) -> Results:
        """The content of a ledger, as frames."""
        refuse_undescribed(state)
        planned = planned_trials(state)
        skipped = {json.dumps(one, sort_keys=True, default=str): dict(one) for p in state.plans for one in p.skipped}
        cells = pd.DataFrame.from_dict({key: flat_cell(cell) for key, cell in state.cells.items()}, orient="index")
        trials = _frame(
            flat_trial(record) | {"collapsed": has_collapsed(record)}
            for found in state.trials.values()
            for record in found.values()
        )
        for name in (
            "cell",
            "fold",
            "repeat",
            "status",
            "reason",
            "collapsed",
            *SCORES,
            "seconds.augment",
            "seconds.train",
        ):
            if name not in trials:  # readers rely on these columns, even if no trial has values for them
                trials[name] = float("nan") if name in SCORES or name.startswith("seconds") else None
        if "seconds.fit" in trials:  # the training time of a learner without epochs
            trials["seconds.train"] = trials["seconds.train"].fillna(trials["seconds.fit"])
        for name in ("dataset", "features", "splits", "k", *PARTS, *TUNING, "weights", "metric", "training.preset"):
            if name not in cells:
                cells[name] = None
        return cls(
            cells,
            trials,
            {key: frozenset(wanted) for key, wanted in planned.items()},
            [*skipped.values()],
            [{"id": one.id, **one.facts} for one in state.provenance.values()],
            [*dict.fromkeys(plan.grid for plan in state.plans)],
        )

    def done(self, key: str | None) -> pd.DataFrame:
        """The finished trials of one cell, by (fold, repeat); empty if there are none."""
        return self._done.iloc[self._slices.get(key, slice(0))] if key is not None else self._done.iloc[:0]

    def values(self, key: str | None, metric: str = "") -> pd.Series[float]:
        """A score of the finished trials as a fraction, by (fold, repeat); by default, the cell's primary metric."""
        name = metric or self.metric_of(key)
        known = self._values.get((key, name))
        if known is None:
            done = self.done(key)
            column = name if name in SCORES else f"scores.{name}"
            found = done[column].astype(float) if column in done else pd.Series(float("nan"), index=done.index)
            known = self._values[key, name] = found.dropna() if column not in SCORES else found
        return known

    def metric_of(self, key: str | None) -> str:
        """The primary metric of a cell."""
        return str(self.cells.at[key, "metric"]) if key in self.cells.index else SCORES[0]

    def collapsed(self, key: str | None) -> float:
        """The share of finished trials that assign all test graphs to one class; NaN if unknown."""
        told = self.done(key)["collapsed"].dropna()
        return float(told.astype(float).mean()) if len(told) else float("nan")

    def fallbacks(self, key: str | None) -> dict[str, float]:
        """For each fallback, the share of the finished trials in which the method used it, by name.

        A trial records only fallbacks that were used, so a trial with generated graphs and no records used none.
        """
        done = self.done(key)
        made = done[done["generated.count"].notna()] if "generated.count" in done else done.iloc[:0]
        noted = [name for name in made.columns if name.startswith(FALLBACK)]
        shares = {name.removeprefix("generated."): float(made[name].fillna(0).gt(0).mean()) for name in noted}
        return {name: share for name, share in shares.items() if share > 0}

    def draws(self, key: str) -> int:
        """The largest number of label draws per fold that the cell has finished."""
        done = self.done(key)
        return int(done.index.get_level_values("repeat").max()) + 1 if len(done) else 0

    def has_more_than(self, draws: int) -> bool:
        """Whether any trial, done or planned, belongs to a later label draw."""
        return any(repeat >= draws for wanted in self.planned.values() for _, repeat in wanted)

    def first_draws(self, draws: int) -> Results:
        """The same with only the first label draws of each fold."""
        planned = {key: frozenset(t for t in wanted if t[1] < draws) for key, wanted in self.planned.items()}
        return replace(self, trials=self.trials[self.trials["repeat"] < draws], planned=planned)

    def planned_trials(self, key: str | None) -> int:
        """How many trials the cell is supposed to have: those planned, and those that were run in addition."""
        return len(self.planned.get(key, frozenset())) if key is not None else 0

    def tidy(self) -> pd.DataFrame:
        """One row per trial, with the columns of its cell."""
        return self.trials.merge(self.cells, left_on="cell", right_index=True, how="left", validate="many_to_one")


def from_records(records: Iterable[Record]) -> Results:
    """Frames of these records."""
    return Results.from_state(LedgerState.of(records))


def from_lines(lines: Iterable[Any]) -> Results:
    """The same for lines of a ledger that were parsed as JSON but not validated."""
    return from_records(map(parse, lines))


def refuse_undescribed(state: LedgerState) -> None:
    """Reject trials of cells that no line describes, because they cannot be told apart."""
    orphans = state.undescribed()
    if orphans:
        raise UserError(
            f"the ledger has trials of a cell that it does not describe ({orphans[0]}); restore its 'cell' line"
        )


def planned_trials(state: LedgerState) -> dict[str, set[tuple[int, int]]]:
    """The planned trials of each cell, and those that were run in addition."""
    planned = {
        key: {(t.fold, t.repeat) for t in wanted} for key, wanted in state.planned().items() if key in state.cells
    }
    for key, trials in state.trials.items():
        planned.setdefault(key, set()).update((t.fold, t.repeat) for t in trials)
    return planned


def flat_cell(cell: Cell, fold: int | None = None) -> dict[str, Any]:
    """A cell as a flat dictionary; a plug-in is its label, with its name and settings as separate columns.

    With a fold, tuned settings are those of the fold; without one, columns in which the folds differ say so.
    """
    if fold is None and cell.by_fold:
        rows = [flat_cell(cell, int(one)) for one in cell.by_fold]
        same = {name: value for name, value in rows[0].items() if all(row[name] == value for row in rows)}
        labels = {part: cell.part_label(part) for part in PARTS}
        return {name: same.get(name, BY_FOLD) for name in rows[0]} | labels
    if fold is not None and str(fold) in (cell.by_fold or {}):
        cell = cell.at(fold)
    flat: dict[str, Any] = {name: getattr(cell, name) for name in ("dataset", "features", "splits", "k")}
    for part in PARTS:
        choice = getattr(cell, part)
        flat[part] = "" if choice is None else choice.label
        flat[f"{part}.name"] = "" if choice is None else choice.name
        flat[f"{part}.settings"] = json.dumps({} if choice is None else dict(choice.settings), sort_keys=True)
    flat["metric"] = cell.metric or SCORES[0]
    flat["tuned"] = cell.tuned
    base = cell.tuned_from or {}
    flat["tuned_from"] = base.get("augmenter")
    flat |= {f"{part}.tuned_from": base.get(part) for part in ("backbone", "learner")}
    flat["tuned_how"] = cell.tuned_how or ("pooled" if cell.tuned else None)
    flat["tuned_on"] = TUNED_ON.get(str(flat["tuned_how"]))
    flat["weights"] = f"{weights_name(flat['backbone'])} {flat['readout']}"  # the initial weights depend on these
    facts = cell.to_json()
    for group in ("training", "versions"):
        flat |= {f"{group}.{name}": value for name, value in facts[group].items()}
    return flat


def flat_trial(record: TrialRecord) -> dict[str, Any]:
    """A trial as a flat dictionary, without its curve."""
    flat: dict[str, Any] = {}
    for name, value in record.to_json().items():
        if name in NESTED:
            flat |= {f"{name}.{inner}": amount for inner, amount in value.items()}
        elif name not in ("type", "curve"):
            flat[name] = value
    return flat


def _frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A frame of rows with different columns; built incrementally, because a list of a million rows is large."""
    columns: dict[str, list[Any]] = {}
    for count, row in enumerate(rows):
        for name, value in row.items():
            if name not in columns:
                columns[name] = [None] * count
            columns[name].append(value)
        if len(row) < len(columns):
            for values in columns.values():
                if len(values) == count:
                    values.append(None)
    return pd.DataFrame(columns)
