"""The data of the report's table of cells: every cell and trial as compact JSON, embedded in the page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from bench.plan.cells import PARTS
from bench.registry import UserError
from bench.results.frame import Results
from bench.results.records import Record, TrialRecord
from tables.differences import paired_differences
from tables.selection import base_label, preset_of
from tables.specs import method_name
from tables.statistics import summary
from tables.wording import three_way_words

COLUMNS = (
    *("key", "dataset", "k", "method", "augmenter", "model", "readout", "preset", "features", "splits", "settings"),
    *("mean", "std", "n", "planned", "difference", "low", "high", "p", "better", "three_way", "collapsed", "seconds"),
)
_SCORES = {"balanced_accuracy": "balanced accuracy (%)", "macro_f1": "macro F1 (%)"}
_FIGURES = {
    "loss": "test loss",
    "labels": "labeled graphs",
    "seconds.augment": "augmentation (s)",
    "seconds.train": "training (s)",
}
_GROUPS = ("training.", "versions.")
_BESIDE = ("splits", "tuned_on", "tuned_from", "weights")


@dataclass
class Curves:
    """The training loss of each cell by epoch, aggregated over its trials while a ledger is read.

    Stores sums, because the curves of a million trials would not fit into memory.
    """

    _sums: dict[str, dict[float, list[float]]] = field(default_factory=dict)
    _seen: set[tuple[str, int, int]] = field(default_factory=set)

    @classmethod
    def of(cls, records: Iterable[Record]) -> Curves:
        """The aggregated curves of records, which are not modified."""
        found = cls()
        for record in records:
            found.take(record)
        return found

    def watch(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records; the curve of each is added and removed from the record."""
        for record in records:
            self.take(record)
            if isinstance(record, TrialRecord):
                record.curve = []
            yield record

    def take(self, record: Record) -> None:
        """Add a record's curve without modifying the record."""
        if not isinstance(record, TrialRecord) or not record.curve or not record.done:
            return
        place = (record.cell, record.fold, record.repeat)
        if place in self._seen:
            return
        self._seen.add(place)
        sums = self._sums.setdefault(record.cell, {})
        for epoch, loss in record.curve:
            if math.isfinite(loss):
                count, total, low, high = sums.get(epoch, (0, 0.0, loss, loss))
                sums[epoch] = [count + 1, total + loss, min(low, loss), max(high, loss)]

    def mean(self, key: str) -> list[list[float | None]]:
        """Epoch, mean, lowest and highest loss, for the epochs that all trials have."""
        sums = self._sums.get(key, {})
        most = max((found[0] for found in sums.values()), default=0)
        return [
            [epoch, *(_short(value, 4) for value in (total / count, low, high))]
            for epoch, (count, total, low, high) in sorted(sums.items())
            if count == most
        ]


@dataclass
class _Words:
    """Numbers repeated texts: settings and reasons are the same in most cells."""

    texts: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def payload(results: Results, metric: str = "accuracy", curves: Curves | None = None) -> dict[str, Any]:
    """Every cell with its difference to plain training, and the details shown when it is selected."""
    words, rows = _Words(), cell_rows(results, metric)
    by_cell = {str(key): part for key, part in results.trials.groupby("cell", sort=False)}
    commits = {str(one["id"]): _measured(one) for one in results.provenance}
    facts, details = {str(key): cell for key, cell in results.cells.to_dict(orient="index").items()}, []
    for key in (row[0] for row in rows):
        trials, cell = by_cell.get(key, results.trials.iloc[:0]), facts[key]
        details.append(
            {
                "facts": [[words.number(n), words.number(v)] for n, v in _facts(cell)],
                "measured": sorted({commits.get(str(one), str(one)) for one in trials.get("provenance", ()) if one}),
                "made": _made(trials),
                "curve": curves.mean(key) if curves else [],
                "trials": _trials(trials, words, metric),
            }
        )
    return {"columns": COLUMNS, "rows": rows, "details": details, "words": list(words.texts)}


def cell_rows(results: Results, metric: str = "accuracy") -> list[list[Any]]:
    """The cells without details, each with the values of `COLUMNS`, by dataset and label rate."""
    differences, facts = _differences(results, metric), results.cells.to_dict(orient="index")
    rows = [_row(results, str(key), cell, differences.get(str(key)), metric) for key, cell in facts.items()]
    return sorted(rows, key=lambda row: (row[1], row[2], row[0]))


def as_json(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element: it cannot open or close a tag or comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _differences(results: Results, metric: str) -> dict[str, dict[str, Any]]:
    try:
        frame = paired_differences(results, "none", metric)
    except UserError:  # no plain training, or a score without differences
        return {}
    return {str(row["cell"]): {str(n): v for n, v in row.items()} for row in frame.to_dict(orient="records")}


def _row(
    results: Results, key: str, cell: Mapping[Any, Any], difference: Mapping[str, Any] | None, metric: str
) -> list[Any]:
    labels = {part: base_label(cell, part) for part in PARTS}
    values, done = summary(results.values(key, metric)), results.done(key)
    method = method_name(labels["augmenter"], labels["backbone"], labels["readout"], labels["learner"])
    seconds = done[["seconds.augment", "seconds.train"]].astype(float).mean().fillna(0).sum() if len(done) else None
    place = [key, str(cell["dataset"]), int(cell["k"]), method, str(cell["augmenter"])]
    place += [labels["backbone"] or labels["learner"], labels["readout"], preset_of(cell), str(cell["features"])]
    place += [str(cell["splits"]), "tuned" if cell["tuned"] else "default"]
    number = [_percent(values.mean), _percent(values.std), values.n, results.planned_trials(key)]
    found: list[Any] = [None] * 6
    if difference is not None and difference["n"]:
        sure = difference["folds"] > 1
        three = three_way_words(*(difference[n] for n in ("worse", "equal", "better"))) if sure else None
        found = [_percent(difference[name]) for name in ("mean", "low", "high")]
        found += [_short(difference["p_holm"], 3), _percent(difference["better"]), three]
    return [*place, *number, *found, _percent(results.collapsed(key)), _short(seconds, 3)]


def _facts(cell: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Every setting of a cell by its full name."""
    for part in PARTS:
        if cell[part]:
            yield part, str(cell[part])
            held = cell[f"{part}.settings"]
            inner = json.loads(held) if isinstance(held, str) and held.startswith("{") else {"settings": held}
            yield from ((f"{part}.{name}", _text(value)) for name, value in inner.items())
    for name, value in cell.items():
        if (str(name).startswith(_GROUPS) or name in _BESIDE) and _told(value):
            yield str(name), _text(value)


def _made(trials: pd.DataFrame) -> list[list[Any]]:
    """Statistics of generated graphs: mean, lowest and highest over the trials that have them."""
    found = []
    for name in [str(column) for column in trials.columns if str(column).startswith("generated.")]:
        values = trials[name].dropna().astype(float)
        if len(values):
            numbers = [_short(float(one), 4) for one in (values.mean(), values.min(), values.max())]
            found.append([name.removeprefix("generated."), *numbers, len(values)])
    return found


def _trials(trials: pd.DataFrame, words: _Words, metric: str) -> dict[str, list[Any]]:
    """The columns of a cell's trials, without empty ones."""
    trials = trials.sort_values(["fold", "repeat"])
    found: dict[str, list[Any]] = {name: [int(one) for one in trials[name]] for name in ("fold", "repeat")}
    scores = {"accuracy": "accuracy (%)", **_SCORES}
    if metric and metric not in scores:
        scores[metric if metric in trials else f"scores.{metric}"] = f"{metric} (%)"
    for name, head in scores.items():
        if name in trials:
            found[head] = [_percent(one, 2) for one in trials[name].astype(float)]
    for name, head in _FIGURES.items():
        if name in trials:
            found[head] = [_short(one, 3) for one in trials[name].astype(float)]
    if "collapsed" in trials:
        found["one class"] = [bool(one) if _told(one) else None for one in trials["collapsed"]]
    for name in ("status", "reason", "engine", "handed_over"):
        if name in trials and not (name == "status" and (trials[name] == "done").all()):
            found[f"#{name}"] = [words.number(str(one)) if _told(one) else None for one in trials[name]]
    return {name: column for name, column in found.items() if any(one is not None for one in column)}


def _measured(entry: Mapping[str, Any]) -> str:
    """The code and machine of a cell's trials, in one line."""
    commit = str(entry.get("commit") or "unknown commit")
    machine = entry.get("machine")
    machine = machine if isinstance(machine, Mapping) else {}
    words = [f"augbench {entry.get('augbench', '?')}", commit[:12] + (" with changes" if entry.get("dirty") else "")]
    return ", ".join([*words, f"torch {entry.get('torch', '?')}", str(machine.get("cpu", "unknown processor"))])


def measured_words(results: Results) -> list[str]:
    """The code and machine of all trials, each combination once."""
    return [*dict.fromkeys(_measured(one) for one in results.provenance)]


def _told(value: Any) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and math.isnan(value))


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _percent(value: Any, digits: int = 3) -> float | None:
    return None if not _told(value) else round(100 * float(value), digits)


def _short(value: Any, digits: int) -> float | None:
    """A number rounded to this many significant digits."""
    if not _told(value) or not math.isfinite(value):
        return None
    short = float(f"{float(value):.{digits}g}")
    return int(short) if short.is_integer() else short
