"""Ledger records -> tidy pandas frames: one row a trial, retries resolved, the planned number of trials known.

Retries: a later line for the same (cell, fold, repeat) replaces an earlier one, except that a trial once done is not
undone by a later failure (a crashed re-run says nothing about the number already measured).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.cells import TUNED_ON
from bench.protocol.seeds import weights_name
from bench.registry import UserError

METRICS = ("accuracy", "balanced_accuracy", "macro_f1")
PARTS = ("augmenter", "backbone", "readout")
BY_FOLD = "by fold"


@dataclass
class Results:
    """All that tables need to know: cells by key, trials, what was planned, skipped, and with which code."""

    cells: pd.DataFrame  # index: key; columns: dataset, k, features, augmenter (label), training.epochs, ...
    trials: pd.DataFrame  # cell, fold, repeat, status, reason, accuracy, ..., seconds.train, generated.count, ...
    planned: dict[str, frozenset[tuple[int, int]]]
    skipped: list[dict[str, Any]] = field(default_factory=list)
    provenance: list[dict[str, Any]] = field(default_factory=list)
    grids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        done = self.trials[self.trials["status"] == "done"] if len(self.trials) else self.trials
        # In order of cells, so that each is a slice: a frame of its own for each of many cells would cost gigabytes.
        self._done = done.sort_values(["cell", "fold", "repeat"]).set_index(["fold", "repeat"])
        cells = self._done["cell"].to_numpy(dtype=object)
        edges = [0, *(np.flatnonzero(cells[1:] != cells[:-1]) + 1), len(cells)] if len(cells) else []
        self._slices = {str(cells[start]): slice(start, end) for start, end in pairwise(edges)}
        self._values: dict[tuple[str | None, str], pd.Series[float]] = {}

    def done(self, key: str | None) -> pd.DataFrame:
        """The finished trials of one cell, by (fold, repeat); empty when there are none."""
        return self._done.iloc[self._slices.get(key, slice(0))] if key is not None else self._done.iloc[:0]

    def values(self, key: str | None, metric: str = "accuracy") -> pd.Series[float]:
        """The finished trials' metric, a fraction, by (fold, repeat)."""
        known = self._values.get((key, metric))
        if known is None:
            known = self._values[key, metric] = self.done(key)[metric].astype(float)
        return known

    def planned_trials(self, key: str | None) -> int:
        """How many trials the cell is meant to have: those planned, and those that were run beyond a plan."""
        return len(self.planned.get(key, frozenset())) if key is not None else 0

    def tidy(self) -> pd.DataFrame:
        """One row a trial with the columns of its cell beside it."""
        return self.trials.merge(self.cells, left_on="cell", right_index=True, how="left", validate="many_to_one")


def flat_cell(record: Mapping[str, Any], fold: int | None = None) -> dict[str, Any]:
    """A cell record in one level; a plug-in is its label, with its name and settings in columns of their own.

    What was tuned fold by fold is that fold's; without a fold, columns in which the folds differ say so.
    """
    by_fold = record.get("by_fold") or {}
    if fold is None and by_fold:
        rows = [flat_cell(record, int(one)) for one in by_fold]
        same = {name: value for name, value in rows[0].items() if all(row[name] == value for row in rows)}
        labels = {part: record[part]["label"] for part in PARTS}
        return {name: same.get(name, BY_FOLD) for name in rows[0]} | labels
    changes = by_fold.get(str(fold), {})
    record = {**record, **changes, "training": {**record["training"], **changes.get("training", {})}}
    flat = {name: record[name] for name in ("dataset", "features", "splits", "k")}
    for part in PARTS:
        flat[part] = record[part]["label"]
        flat[f"{part}.name"] = record[part]["name"]
        flat[f"{part}.settings"] = json.dumps(record[part]["settings"], sort_keys=True)
    flat["tuned"] = bool(record.get("tuned", False))
    base = record.get("tuned_from") or {}
    flat["tuned_from"], flat["backbone.tuned_from"] = base.get("augmenter"), base.get("backbone")
    flat["tuned_how"] = record.get("tuned_how") or ("pooled" if flat["tuned"] else None)
    flat["tuned_on"] = TUNED_ON.get(str(flat["tuned_how"]))
    flat["weights"] = f"{weights_name(flat['backbone'])} {flat['readout']}"  # the first weights hang on these
    for group in ("training", "versions"):
        flat |= {f"{group}.{name}": value for name, value in record[group].items()}
    return flat


Trial = dict[str, Any]


def _flat_trial(record: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in record.items() if name not in ("type", "seconds", "generated", "curve")}
    for group in ("seconds", "generated"):
        flat |= {f"{group}.{name}": value for name, value in (record.get(group) or {}).items()}
    return flat


@dataclass
class Collected:
    """The ledger's lines by what they describe, retries resolved."""

    cells: dict[str, dict[str, Any]]
    trials: dict[tuple[str, int, int], Trial]
    plans: list[dict[str, Any]]
    planned: dict[str, set[tuple[int, int]]]
    skipped: list[dict[str, Any]]
    provenance: list[dict[str, Any]]
    grids: list[str]

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> Collected:
        """In the lines' order; kinds of lines that tables have no use for are passed over."""
        found = cls({}, {}, [], {}, [], [], [])
        skipped: dict[str, dict[str, Any]] = {}
        provenance: dict[str, dict[str, Any]] = {}
        grids: dict[str, None] = {}
        for record in records:
            match record.get("type"):
                case "cell":
                    found.cells[record["key"]] = dict(record)
                case "trial":
                    found._take(_checked(record))
                case "plan":
                    found.plans.append(dict(record))
                    grids[str(record["grid"])] = None
                    wanted = {(fold, repeat) for fold in record["folds"] for repeat in record["repeats"]}
                    for key in record["cells"]:
                        found.planned.setdefault(key, set()).update(wanted)
                    for item in record.get("skipped") or []:
                        skipped[json.dumps(item, sort_keys=True, default=str)] = dict(item)
                case "provenance":
                    provenance[record["id"]] = {name: value for name, value in record.items() if name != "type"}
        for key, fold, repeat in found.trials:
            found.planned.setdefault(key, set()).add((fold, repeat))
        orphans = {key for key, *_ in found.trials} - set(found.cells)
        if orphans:
            raise UserError(
                f"the ledger has trials of a cell that it does not describe ({min(orphans)}); restore its 'cell' line"
            )
        found.skipped, found.provenance, found.grids = [*skipped.values()], [*provenance.values()], [*grids]
        return found

    def _take(self, trial: Trial) -> None:
        identity = trial["cell"], trial["fold"], trial["repeat"]
        if trial["status"] == "done" or self.trials.get(identity, {}).get("status") != "done":
            self.trials[identity] = trial


def _checked(record: Mapping[str, Any]) -> Trial:
    number = record.get("accuracy")
    if record["status"] == "done" and not (isinstance(number, int | float) and math.isfinite(number)):
        return {**record, "status": "failed", "reason": "recorded as done without a finite accuracy"}
    return dict(record)


def from_records(records: Iterable[Mapping[str, Any]]) -> Results:
    """The ledger's lines as frames."""
    found = Collected.of(records)
    return _results(
        pd.DataFrame.from_dict({key: flat_cell(cell) for key, cell in found.cells.items()}, orient="index"),
        _frame(_flat_trial(found.trials.pop(identity)) for identity in list(found.trials)),
        {key: frozenset(wanted) for key, wanted in found.planned.items()},
        {"skipped": found.skipped, "provenance": found.provenance, "grids": found.grids},
    )


def _frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows with whatever columns they have; taken one by one, since a list of a million of them is large."""
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


def _results(
    cells: pd.DataFrame,
    trials: pd.DataFrame,
    planned: dict[str, frozenset[tuple[int, int]]],
    rest: dict[str, Any],
) -> Results:
    """Columns that every reader counts on are there even when no trial has filled them."""
    for name in ("cell", "fold", "repeat", "status", "reason", *METRICS, "seconds.augment", "seconds.train"):
        if name not in trials:
            trials[name] = float("nan") if name in METRICS or name.startswith("seconds") else None
    for name in (
        "dataset",
        "features",
        "splits",
        "k",
        *PARTS,
        "tuned",
        "tuned_from",
        "tuned_how",
        "weights",
        "training.preset",
    ):
        if name not in cells:
            cells[name] = None
    return Results(cells, trials, planned, **rest)
