"""Ledger records -> tidy pandas frames: one row a trial, retries resolved, the planned number of trials known.

Retries: a later line for the same (cell, fold, repeat) replaces an earlier one, except that a trial once done is not
undone by a later failure (a crashed re-run says nothing about the number already measured).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from bench.registry import UserError

METRICS = ("accuracy", "balanced_accuracy", "macro_f1")
PARTS = ("augmenter", "backbone", "readout")
_IDENTITY = ("cell", "fold", "repeat")
_METADATA = b"augbench"


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
        self._done = {str(key): part.set_index(["fold", "repeat"]).sort_index() for key, part in done.groupby("cell")}

        self._values: dict[tuple[str | None, str], pd.Series[float]] = {}

    def done(self, key: str | None) -> pd.DataFrame:
        """The finished trials of one cell, by (fold, repeat); empty when there are none."""
        if key is None or key not in self._done:
            return self.trials.iloc[:0].set_index(["fold", "repeat"])
        return self._done[key]

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


def flat_cell(record: Mapping[str, Any]) -> dict[str, Any]:
    """A cell record in one level; a plug-in is its label, with its name and settings in columns of their own."""
    flat = {name: record[name] for name in ("dataset", "features", "splits", "k")}
    for part in PARTS:
        flat[part] = record[part]["label"]
        flat[f"{part}.name"] = record[part]["name"]
        flat[f"{part}.settings"] = json.dumps(record[part]["settings"], sort_keys=True)
    flat["tuned"] = bool(record.get("tuned", False))
    base = record.get("tuned_from") or {}
    flat["tuned_from"], flat["backbone.tuned_from"] = base.get("augmenter"), base.get("backbone")
    for group in ("training", "versions"):
        flat |= {f"{group}.{name}": value for name, value in record[group].items()}
    return flat


def _flat_trial(record: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in record.items() if name not in ("type", "seconds", "generated")}
    for group in ("seconds", "generated"):
        flat |= {f"{group}.{name}": value for name, value in (record.get(group) or {}).items()}
    number = flat.get("accuracy")
    if flat["status"] == "done" and not (isinstance(number, int | float) and math.isfinite(number)):
        flat |= {"status": "failed", "reason": "recorded as done without a finite accuracy"}
    return flat


def from_records(records: Iterable[Mapping[str, Any]]) -> Results:
    """Read the ledger's lines, in their order; kinds of lines that tables have no use for are passed over."""
    cells: dict[str, dict[str, Any]] = {}
    trials: dict[tuple[Any, ...], dict[str, Any]] = {}
    planned: dict[str, set[tuple[int, int]]] = {}
    skipped: dict[str, dict[str, Any]] = {}
    provenance: dict[str, dict[str, Any]] = {}
    grids: dict[str, None] = {}
    for record in records:
        match record.get("type"):
            case "cell":
                cells[record["key"]] = flat_cell(record)
            case "trial":
                identity = tuple(record[name] for name in _IDENTITY)
                trial = _flat_trial(record)
                if trial["status"] == "done" or trials.get(identity, {}).get("status") != "done":
                    trials[identity] = trial
            case "plan":
                grids[str(record["grid"])] = None
                wanted = {(fold, repeat) for fold in record["folds"] for repeat in record["repeats"]}
                for key in record["cells"]:
                    planned.setdefault(key, set()).update(wanted)
                for item in record.get("skipped") or []:
                    skipped[json.dumps(item, sort_keys=True, default=str)] = dict(item)
            case "provenance":
                provenance[record["id"]] = {name: value for name, value in record.items() if name != "type"}
    for key, fold, repeat in trials:
        planned.setdefault(key, set()).add((fold, repeat))
    orphans = {key for key, *_ in trials} - set(cells)
    if orphans:
        raise UserError(
            f"the ledger has trials of a cell that it does not describe ({min(orphans)}); restore its 'cell' line"
        )
    return _results(
        pd.DataFrame.from_dict(cells, orient="index"),
        pd.DataFrame(list(trials.values())),
        {key: frozenset(found) for key, found in planned.items()},
        {"skipped": list(skipped.values()), "provenance": list(provenance.values()), "grids": list(grids)},
    )


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
    for name in ("dataset", "features", "splits", "k", *PARTS, "tuned", "tuned_from", "training.preset"):
        if name not in cells:
            cells[name] = None
    return Results(cells, trials, planned, **rest)


def write_parquet(results: Results | Iterable[Mapping[str, Any]], path: Path) -> None:
    """All trials in one file, one row each, cells' columns beside them; planned ones not yet run are `pending` rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    results = results if isinstance(results, Results) else from_records(results)
    seen = set(zip(results.trials["cell"], results.trials["fold"], results.trials["repeat"], strict=True))
    pending = [
        {"cell": key, "fold": fold, "repeat": repeat, "status": "pending"}
        for key in results.cells.index
        for fold, repeat in sorted(results.planned.get(key, ()))
        if (key, fold, repeat) not in seen
    ]
    trials = pd.concat([results.trials, pd.DataFrame(pending)], ignore_index=True) if pending else results.trials
    rows = trials.merge(results.cells, left_on="cell", right_index=True, how="left").convert_dtypes()
    rest = {"skipped": results.skipped, "provenance": results.provenance, "grids": results.grids}
    table = pa.Table.from_pandas(rows, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), _METADATA: json.dumps(rest, default=str).encode()}
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata(metadata), path)


def read_parquet(path: Path) -> Results:
    """The results that `write_parquet` wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise UserError(f"{path} cannot be read as a parquet file of trials ({error}); write it anew") from error
    metadata = (table.schema.metadata or {}).get(_METADATA)
    if metadata is None or not {"cell", "status", "dataset"} <= set(table.column_names):
        raise UserError(f"{path} is not a file of trials; write one from a ledger")
    rows = table.to_pandas()
    cell_columns = ["dataset", "features", "splits", "k", "tuned", "tuned_from"]
    cell_columns += [n for n in rows.columns if n.split(".")[0] in (*PARTS, "training", "versions")]
    cells = rows.drop_duplicates("cell").set_index("cell")[[n for n in cell_columns if n in rows.columns]]
    cells.index.name = None
    planned = {
        str(key): frozenset(zip(part["fold"].astype(int), part["repeat"].astype(int), strict=True))
        for key, part in rows.groupby("cell")
    }
    trials = rows[rows["status"] != "pending"].drop(columns=[n for n in cells.columns if n in rows.columns])
    return _results(_plain(cells), _plain(trials.reset_index(drop=True)), planned, json.loads(metadata))


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Ordinary numbers and Python objects, with None for what is missing in a column of words."""
    plain = frame.copy()
    for name in plain.columns:
        column = plain[name]
        if pd.api.types.is_bool_dtype(column):
            plain[name] = column.astype(bool)
        elif pd.api.types.is_numeric_dtype(column):
            whole = pd.api.types.is_integer_dtype(column) and not column.isna().any()
            plain[name] = column.astype("int64" if whole else "float64")
        else:
            plain[name] = column.astype(object).where(column.notna(), None)
    return plain
