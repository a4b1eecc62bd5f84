"""The opening of a report: sentences with the conclusions, and a heat map of differences with links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tables.conclusion import Conclusion, Finding
from tables.frames import ALL, NothingToDraw, method_frame, methods_in_order, over_datasets_frame, panels, rates
from tables.grid import Request, draws_used, reference_of
from tables.selection import Index
from tables.specs import Coordinate, method_name
from tables.statistics import ALPHA, holm, summary
from tables.style import dataset_name
from tables.wording import signed

USUAL = ("gcn", "mean")
MARKS = {"better": ("▲", "significantly better"), "worse": ("▼", "significantly worse")}


@dataclass(frozen=True)
class Square:
    """One method on one dataset: the difference in points, the strength of its color, and its cell."""

    number: str
    side: str  # up or down
    strength: int  # percent of the color
    mark: str
    words: str  # its interval and the result of the test
    key: str | None


@dataclass(frozen=True)
class HeatMap:
    """Methods by datasets at one label rate."""

    k: int
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Square | None, ...]], ...]
    is_open: bool
    model: str


@dataclass(frozen=True)
class Verdict:
    """The first part of a section."""

    sentences: tuple[str, ...]
    maps: tuple[HeatMap, ...]


def verdict(index: Index, request: Request) -> Verdict:
    """Sentences about all cells of a section, and heat maps of the usual model, or the one that most cells have."""
    request = replace(request, settings=request.settings[:1])
    conclusion = _conclusion(index, request)
    found = [conclusion.sentence(), *_overall_words(conclusion)]
    model = _model(index, request.settings[0])
    try:
        frame = method_frame(index, request, *model)
    except NothingToDraw:
        return Verdict(tuple(found), ())
    places = [k for k in rates(frame) if (frame.loc[frame["k"] == k, "paired"].notna()).any()]
    if not places:
        return Verdict(tuple(found), ())
    shown = 10 if 10 in places else places[-1]
    found += _pooled_words(over_datasets_frame(frame, shown), shown, model)
    return Verdict(tuple(found), tuple(_map(index, request, frame, k, model, k == shown) for k in places))


def _model(index: Index, settings: str) -> tuple[str, str]:
    models = Counter((c.backbone, c.readout) for c in index.coordinates([settings]) if c.backbone)
    return USUAL if USUAL in models or not models else max(sorted(models), key=lambda one: models[one])


def _conclusion(index: Index, request: Request) -> Conclusion:
    """The same conclusion as at the end of a run, over all cells of a section."""
    index = index.using(draws_used(request, papers=True))
    places = index.coordinates(request.settings)
    wanted = [*dict.fromkeys([*places, *map(reference_of, places)])]
    chosen = index.choose(wanted, request.settings[0], request.pick)
    found: dict[tuple[str, tuple[str, int]], Finding] = {}
    families: dict[tuple[object, ...], list[tuple[str, tuple[str, int]]]] = {}
    for place in places:
        key, against = chosen[place], chosen[reference_of(place)]
        if key is None:
            continue
        name = method_name(place.augmenter, place.backbone, place.readout, place.learner)
        paired = index.paired(key, against, request.metric) if against and against != key else None
        value = summary(index.results.values(key, request.metric))
        at = (name, (place.dataset, place.k))
        found[at] = Finding(value, paired, index.results.collapsed(key), place.augmenter == "none")
        families.setdefault(tuple(vars(replace(place, augmenter="")).values()), []).append(at)
    for keys in families.values():  # the methods compared under the same conditions, as everywhere on the page
        corrected = holm([_p(found[key]) for key in keys])
        found |= {key: replace(found[key], p_holm=p) for key, p in zip(keys, corrected, strict=True)}
    columns = tuple(dict.fromkeys(place for _, place in found))
    return Conclusion(tuple(dict.fromkeys(row for row, _ in found)), columns, found)


def _p(finding: Finding) -> float:
    return finding.difference.p if finding.difference is not None else np.nan


def _overall_words(conclusion: Conclusion) -> list[str]:
    """What remains significant when all differences are corrected for together."""
    tested = [_p(one) for one in conclusion.findings.values() if not np.isnan(_p(one))]
    kept = sum(p < ALPHA for p in holm(tested))
    if not any(one.sign for one in conclusion.findings.values()) or len(tested) < 2:
        return []
    remain = f"{kept or 'none'} {'remain' if kept > 1 else 'remains'}"
    return [
        "Significant means p < 0.05 after Holm's correction over every method run with the same model, dataset and "
        f"number of labels; with the correction over all {len(tested)} differences, {remain}."
    ]


def _pooled_words(over: pd.DataFrame, k: int, model: tuple[str, str]) -> list[str]:
    if over.empty:
        return []
    held = {name: [row for row in over.to_dict(orient="records") if row["verdict"] == name] for name in MARKS}
    top = max(over.to_dict(orient="records"), key=lambda row: float(row["difference_mean"]))
    parts = [f"{len(rows)} {name} ({', '.join(map(_span, rows))})" for name, rows in held.items() if rows]
    said = f"significant: {'; '.join(parts)}" if parts else "none of the differences is significant"
    return [
        f"Over {int(top['datasets'])} datasets together at k = {k} ({model[0].upper()}, {model[1]} readout), "
        f"{said}; the highest mean is that of {_span(top)}."
    ]


def standings(index: Index, request: Request) -> list[dict[str, Any]]:
    """Every method over the datasets at each label rate, by descending mean difference."""
    try:
        frame = method_frame(index, request, *_model(index, request.settings[0]))
    except NothingToDraw:
        return []
    found = [over for k in rates(frame) if len(over := over_datasets_frame(frame, k))]
    if not found:
        return []
    rows = pd.concat(found).sort_values(["k", "difference_mean"], ascending=[True, False])
    return [
        {
            "k": row["k"],
            "method": row["method"],
            "datasets": int(row["datasets"]),
            "mean": row["difference_mean"],
            "words": signed(row["difference_mean"] / 100).replace("-", "−"),
            "interval": " to ".join(signed(row[f"difference_{n}"] / 100) for n in ("low", "high")).replace("-", "−"),
            "p": row["p_holm"],
            "mark": MARKS.get(str(row["verdict"]), ("", ""))[0],
        }
        for row in rows.to_dict(orient="records")
    ]


def _span(row: Mapping[Any, Any]) -> str:
    numbers = [signed(row[f"difference_{name}"] / 100) for name in ("mean", "low", "high")]
    return f"{row['method']} {numbers[0]} [{numbers[1]}, {numbers[2]}]"


def _map(index: Index, request: Request, frame: pd.DataFrame, k: int, model: tuple[str, str], is_open: bool) -> HeatMap:
    part = frame[(frame["k"] == k) & frame["paired"].notna()]
    over = over_datasets_frame(frame, k)
    methods, datasets = methods_in_order(part["method"]), panels(part)
    augmenters = dict(zip(part["method"], part["augmenter"], strict=True))
    most = max(2.0, float(part["difference_mean"].abs().max()))
    places = {
        (name, dataset): Coordinate(dataset, k, str(augmenters[name]), *model)
        for name in methods
        for dataset in datasets
    }
    keys = index.choose(places.values(), request.settings[0], request.pick)
    rows = []
    both = pd.concat([part, over]) if len(over) else part
    by_place = {(row["method"], row["dataset"]): row for row in both.to_dict(orient="records")}
    for name in methods:
        squares = []
        for dataset in [*datasets, *([ALL] if len(over) else [])]:
            row = by_place.get((name, dataset))
            place = places.get((name, dataset))
            squares.append(None if row is None else _square(row, most, keys.get(place) if place else None))
        rows.append((name, tuple(squares)))
    heads = [dataset_name(name, short=True) for name in datasets]
    heads += [f"All {int(over['datasets'].iloc[0])}"] if len(over) else []
    return HeatMap(k, tuple(heads), tuple(rows), is_open, f"{model[0].upper()}, {model[1]} readout")


def _square(row: Mapping[Any, Any], most: float, key: str | None) -> Square:
    value = float(row["difference_mean"])
    mark, said = MARKS.get(
        str(row["verdict"]), ("", "too few pairs for a test" if row["verdict"] == "untested" else "")
    )
    low, high = (signed(row[f"difference_{name}"] / 100) for name in ("low", "high"))
    interval = "" if np.isnan(row["difference_low"]) else f"95 % interval {low} to {high}"
    words = ", ".join(word for word in (interval, said) if word)
    strength = min(100, round(100 * abs(value) / most))
    return Square(signed(value / 100).replace("-", "−"), "up" if value > 0 else "down", strength, mark, words, key)
