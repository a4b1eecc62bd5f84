"""The data of figures: one row per dataset, label rate and method, with everything known about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from bench.registry import UserError, unknown
from tables.grid import Request, draws_used, reference_of
from tables.selection import METRIC_FACETS, Index
from tables.specs import LONG_NAMES, METHODS, Column, Coordinate, Row, method_name
from tables.statistics import ALPHA, Paired, error_over_folds, holm, interval, pooled
from tables.style import datasets_in_order

ALL = "all datasets"
VERDICTS = ("better", "worse", "open", "untested", "reference")


class NothingToDraw(UserError):
    """No finished trial has what the figure shows."""


def method_frame(
    index: Index,
    request: Request,
    backbone: str = "gcn",
    readout: str = "mean",
    datasets: Sequence[str] = (),
) -> pd.DataFrame:
    """Every method of one model with its plain training; accuracies and differences in percent.

    The paper's methods on its datasets, and all methods on other datasets. p-values are Holm-corrected over the methods
    of a dataset and label rate.
    """
    there = _chosen_places(index, request.settings[0], (backbone, readout), datasets)
    named = {place: method_name(place.augmenter, place.backbone, place.readout) for place in there}
    return _measured(index, request, named, f"backbone {backbone} and readout {readout}")


def rows_frame(
    index: Index, request: Request, rows: Sequence[Row], reference: Row, datasets: Sequence[str] = ()
) -> pd.DataFrame:
    """The same for the rows of a specification, each compared with one of them."""
    there = [c for c in index.coordinates([request.settings[0]]) if not datasets or c.dataset in datasets]
    named = {c: row.name for c in there for row in rows if row.at(Column(c.dataset, c.k, "")) == c}
    papers = {place for place in named if place.dataset in LONG_NAMES}
    shown = {place: name for place, name in named.items() if place in papers or not papers}
    return _measured(index, request, shown, "one of these rows", reference)


def _measured(
    index: Index, request: Request, named: Mapping[Coordinate, str], what: str, reference: Row | None = None
) -> pd.DataFrame:
    """One row for each cell that has a finished trial."""
    index = index.using(draws_used(request, papers=True))
    chosen = index.choose(named, request.settings[0], request.pick)
    index.check_agreement(chosen.values(), replace(request.pick, mix=request.pick.mix | METRIC_FACETS))
    index.check_metric(request.metric)
    rows = []
    for place, key in chosen.items():
        values, planned = index.results.values(key, request.metric), index.results.planned_trials(key)
        if request.strict and len(values) < planned:
            raise UserError(f"{place} has {len(values)} of {planned} trials; run them, or leave out --strict")
        if key is None or not len(values):
            continue
        against = reference_of(place, reference)
        plain = chosen.get(against)
        found = index.paired(key, plain, request.metric) if plain and plain != key else None
        words = {"method": named[place], "is_reference": against == place}
        rows.append(_row(index, place, key, found, request.metric) | words)
    if not rows:
        raise NothingToDraw(f"no finished {request.settings[0]} trial with {what}; run a grid that has them")
    return _judged(pd.DataFrame(rows).sort_values(["dataset", "k"], kind="stable").reset_index(drop=True))


def drawn_datasets(index: Index, settings: str, model: tuple[str, str] = ("gcn", "mean")) -> set[str]:
    """The datasets that `method_frame` has something of."""
    return {c.dataset for c in _places(index, settings, model)}


def _places(index: Index, settings: str, model: tuple[str, str]) -> list[Coordinate]:
    paper = {row.augmenter for row in METHODS}
    there = [c for c in index.coordinates([settings]) if (c.backbone, c.readout) == model]
    return [c for c in there if c.augmenter in paper or c.dataset not in LONG_NAMES]


def _chosen_places(index: Index, settings: str, model: tuple[str, str], datasets: Sequence[str]) -> list[Coordinate]:
    there = _places(index, settings, model)
    known = {c.dataset for c in there}
    for name in datasets:
        if name not in known:
            raise unknown("dataset with results", name, known)
    wanted = set(datasets) or (known & set(LONG_NAMES)) or known
    return [c for c in there if c.dataset in wanted]


def _row(index: Index, place: Coordinate, key: str, found: Paired | None, metric: str) -> dict[str, object]:
    values, done = index.results.values(key, metric), index.results.done(key)
    folds, error = error_over_folds(values)
    low, high = interval(float(values.mean()), error, folds)
    seconds = done[["seconds.augment", "seconds.train"]].astype(float).mean().fillna(0)
    row: dict[str, object] = {
        "dataset": place.dataset,
        "k": place.k,
        "augmenter": place.augmenter,
        "value": 100 * float(values.mean()),
        "low": 100 * low,
        "high": 100 * high,
        "trials": len(values),
        "planned": index.results.planned_trials(key),
        "seconds": float(seconds.sum()),
        "collapsed": index.results.collapsed(key),
        "paired": found,
    }
    names = ("mean", "low", "high", "detectable")
    row |= {f"difference_{name}": 100 * getattr(found, name) if found else np.nan for name in names}
    row |= {name: getattr(found, name) if found else np.nan for name in ("p", "worse", "equal", "better")}
    return row


def _judged(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with corrected p-values and their interpretation."""
    frame["p_holm"] = np.nan
    for _, part in frame.groupby(["dataset", "k"]):
        frame.loc[part.index, "p_holm"] = holm(part["p"].tolist())
    frame["verdict"] = [
        _verdict(mean, p, found)
        for mean, p, found in zip(frame["difference_mean"], frame["p_holm"], frame["paired"], strict=True)
    ]
    return frame


def _verdict(mean: float, p: float, found: object) -> str:
    if found is None:
        return "reference"
    if np.isnan(p):
        return "untested"
    return "open" if p >= ALPHA else "better" if mean > 0 else "worse"


def over_datasets_frame(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    """One row per method over the datasets at one label rate that all compared methods have."""
    part = frame[(frame["k"] == k) & frame["paired"].notna()]
    wide = part.pivot(index="dataset", columns="method", values="difference_low").dropna(axis="index")
    rows = []
    for method in dict.fromkeys(part["method"]):
        held = part[(part["method"] == method) & part["dataset"].isin(wide.index)]
        found = pooled(list(held["paired"]))
        if found is not None:
            rows.append(
                {"dataset": ALL, "k": k, "method": method, "p": found.p, "paired": found, "datasets": found.datasets}
                | {f"difference_{name}": 100 * getattr(found, name) for name in ("mean", "low", "high")}
                | {name: getattr(found, name) for name in ("worse", "equal", "better")}
            )
    return _judged(pd.DataFrame(rows)) if rows else pd.DataFrame()


def methods_in_order(methods: Iterable[str]) -> list[str]:
    """The paper's methods in the order of its tables, then the others by name."""
    order = {row.name: place for place, row in enumerate(METHODS)}
    return sorted(dict.fromkeys(methods), key=lambda name: (order.get(name, len(order)), name))


def rates(frame: pd.DataFrame) -> list[int]:
    return sorted(int(k) for k in frame["k"].unique())


def panels(frame: pd.DataFrame) -> list[str]:
    return datasets_in_order(frame["dataset"])
