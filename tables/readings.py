"""The results of each reading of the paper: the plain baseline, GDM's gain over it, collapse, and the paper's numbers.

A *reading* is one level for each choice that the paper leaves open. A *specification* is a reading of one method on one
dataset, compared with plain training under the same reading.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.cells import Cell
from bench.registry import UserError, show
from bench.results.ledger import LedgerState
from bench.results.summary import collapsed_share
from tables.compare import OPEN, WITHIN, Compared
from tables.formats import pipe_table
from tables.paper import numbers
from tables.specs import Coordinate
from tables.statistics import error_over_folds, interval, paired, summary

METHODS = ("gdm-rand", "gdm-acc", "gdm-unc")
BASELINE_CHOICES = ("head", "features", "select", "loss", "batch", "norm")  # choices that also apply to plain training
OWN_CHOICES = ("start", "count", "output", "padding", "alignment", "generated")  # choices that apply only to GDM
CHOICES = (*BASELINE_CHOICES, "epochs", *OWN_CHOICES)
NATIVE = "native"
_USUAL_EPOCHS = "800"
_WORDS = {
    "head": "Head of the classifier",
    "features": "Features of the social sets",
    "select": "Epoch that counts",
    "loss": "Loss",
    "batch": "Graphs per step (0: all)",
    "norm": "Normalization in the layers",
    "epochs": "Epochs of the baseline",
    "start": "Start of the final training",
    "count": "Generated graphs per original",
    "output": "End of the encoder",
    "padding": "Padding of the smaller graph",
    "alignment": "Alignment of two graphs",
    "generated": "When graphs are generated",
}


@dataclass(frozen=True)
class Study:
    """All specifications of a ledger, one row each, and the table of readings over them."""

    specifications: pd.DataFrame
    readings: pd.DataFrame


def study(state: LedgerState) -> Study:
    """Every GDM cell at ten labels per class with its baseline; for incomplete cells, only common trials count."""
    held = list(_held(state))
    plain = {_place(one, with_epochs=True): one for one in held if one["method"] == "none"}
    rows = []
    for one in held:
        if one["method"] == "none":
            continue
        for epochs in dict.fromkeys(place[-1] for place in plain if place[:-1] == _place(one)):
            found = _compared(one, plain[(*_place(one), epochs)])
            if found:
                rows.append({**found, "epochs": epochs})
    if not rows:
        raise UserError("no GDM cell at k=10 has a plain baseline of the same reading; run `bench run --grid readings`")
    frame = pd.DataFrame(rows).sort_values(["gain", "dataset", "method", *CHOICES], ignore_index=True)
    return Study(frame, _by_reading(frame))


def _held(state: LedgerState) -> Iterator[dict[str, Any]]:
    """The study's cells with their levels and scores by fold and repeat."""
    for key, cell in state.cells.items():
        if cell.tuned or cell.k != 10 or cell.backbone is None or cell.readout is None:
            continue
        if cell.backbone.name != "gcn" or cell.readout.label != "mean" or cell.learner.name != "gnn":
            continue
        levels = levels_of(cell)
        done = [one for one in state.trials.get(key, {}).values() if one.done]
        if levels is None or not done:
            continue
        index = pd.MultiIndex.from_tuples([(one.fold, one.repeat) for one in done], names=["fold", "repeat"])
        values = pd.Series([one.accuracy for one in done], index=index, dtype=float)
        fallback = float(np.mean([one.generated.get("fallback_acc_empty_pool", 0.0) > 0 for one in done]))
        yield {
            **levels,
            "dataset": cell.dataset,
            "method": cell.augmenter.name,
            "values": values,
            "collapse": collapsed_share(done),
            "fallback": fallback if cell.augmenter.name == "gdm-acc" else math.nan,
        }


def levels_of(cell: Cell) -> dict[str, str] | None:
    """The level of every choice; None for a cell that differs in anything else and is therefore not a reading."""
    training, augmenter = cell.training, cell.augmenter
    if training.preset.partition("+")[0] not in ("paper", "standard") or training.lr != 0.01 or training.weight_decay:
        return None
    backbone = dict(cell.backbone.settings) if cell.backbone else {}
    norm = show(backbone.pop("norm", "none"))
    if backbone != {"dropout": 0.0, "layers": 4, "residual": False, "width": 64}:
        return None
    levels = {name: show(getattr(training, name)) for name in ("head", "select", "loss", "batch", "epochs", "start")}
    levels |= {"features": cell.features, "norm": norm}
    if augmenter.name == "none":
        return levels if training.start == "fresh" else None
    if augmenter.name not in METHODS or levels["epochs"] != _USUAL_EPOCHS:
        return None
    own = {name: show(augmenter.settings[name]) for name in OWN_CHOICES if name in augmenter.settings}
    written = augmenter.label.partition(":")[2]
    if any(part.partition("=")[0] not in OWN_CHOICES for part in written.split(",") if part):
        return None
    return {**levels, **own}


def _place(one: Mapping[str, Any], with_epochs: bool = False) -> tuple[Any, ...]:
    names = (*BASELINE_CHOICES, "epochs") if with_epochs else BASELINE_CHOICES
    return (one["dataset"], *(one[name] for name in names))


def _compared(one: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any] | None:
    """One specification: means, the gain paired by fold, collapse, and whether the paper's numbers are within noise."""
    gains = (one["values"] - plain["values"]).dropna()
    if gains.empty:
        return None
    by_fold = gains.groupby(level="fold").mean()
    found = paired(one["values"], plain["values"])
    near = [_near(row["dataset"], row["method"], row["values"]) for row in (one, plain)]
    return {
        "dataset": one["dataset"],
        "method": one["method"],
        **{name: one[name] for name in (*BASELINE_CHOICES, *OWN_CHOICES)},
        "baseline": float(plain["values"].mean()),
        "gain": found.mean,
        "low": found.low,
        "high": found.high,
        "collapse": plain["collapse"],
        "collapse_gdm": one["collapse"],
        "fallback": one["fallback"],
        "near": near[0],
        "near_baseline": near[1],
        "trials": len(gains),
        "by_fold": by_fold,
    }


def _near(dataset: str, method: str, values: pd.Series[float]) -> float:
    """1 if the paper's corresponding number is within noise, 0 if not, NaN if there is none."""
    theirs = next((n for n in numbers() if n.coordinate == Coordinate(dataset, 10, method)), None)
    if theirs is None:
        return math.nan
    found = Compared(theirs, summary(values), len(values), (), *error_over_folds(values))
    return math.nan if found.verdict == OPEN else float(found.verdict == WITHIN)


def _by_reading(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per reading, over datasets and methods; datasets with native features belong to every level of
    `features`.
    """
    social = [level for level in frame["features"].unique() if level != NATIVE]
    rows = []
    rest = [name for name in CHOICES if name != "features"]
    for levels, part in frame.groupby(rest, sort=False):
        kinds = [level for level in social if (part["features"] == level).any()] or [NATIVE]
        for kind in kinds:
            chosen = part[part["features"].isin([kind, NATIVE])]
            folds = pd.concat(list(chosen["by_fold"]), axis=1).mean(axis=1)
            count, gain = len(folds), float(folds.mean())
            low, high = interval(gain, float(folds.std(ddof=1)) / math.sqrt(count) if count > 1 else math.nan, count)
            plain = chosen.drop_duplicates("dataset")
            near = pd.concat([chosen["near"], plain["near_baseline"]]).dropna()
            rows.append(
                {
                    **dict(zip(rest, levels, strict=True)),
                    "features": kind,
                    "datasets": len(plain),
                    "specifications": len(chosen),
                    "baseline": plain["baseline"].mean(),
                    "gain": gain,
                    "low": low,
                    "high": high,
                    "collapse": plain["collapse"].mean(),
                    "near": int(near.sum()),
                    "of": len(near),
                }
            )
    return pd.DataFrame(rows).sort_values("gain", ascending=False, ignore_index=True)


def varied(frame: pd.DataFrame) -> list[str]:
    """The choices that have more than one level."""
    return [name for name in CHOICES if frame[name].nunique() > 1]


def reading_words(row: Mapping[Any, Any], names: Iterable[str]) -> str:
    """The levels of some choices, as the name of a reading."""
    return ", ".join(f"{name}={row[name]}" for name in names)


def paragraphs(found: Study) -> list[str]:
    """One paragraph per choice: the effect of its levels when everything else is equal."""
    frame = found.specifications
    texts = []
    for choice in varied(frame):
        rest = [name for name in ("dataset", "method", *CHOICES) if name != choice]
        levels = sorted(level for level in frame[choice].unique() if level != NATIVE)
        sentences = []
        for first, second in itertools.combinations(levels, 2):
            a, b = (frame[frame[choice] == level].set_index(rest) for level in (first, second))
            both = a.index.intersection(b.index)
            if both.empty:
                continue
            baseline = float((b.loc[both, "baseline"] - a.loc[both, "baseline"]).mean())
            gain = float((b.loc[both, "gain"] - a.loc[both, "gain"]).mean())
            sentences.append(
                f"From {first} to {second}, over {len(both)} pairs of specifications that are equal otherwise, plain "
                f"training changes by {100 * baseline:+.1f} points and the gain of GDM by {100 * gain:+.1f}."
            )
        if sentences:
            texts.append(f"**{_WORDS[choice]}** (`{choice}`). {' '.join(sentences)}")
    return texts


def summary_sentence(found: Study) -> str:
    """How many specifications show a gain, and how large the largest is."""
    frame = found.specifications
    up, down = int((frame["low"] > 0).sum()), int((frame["high"] < 0).sum())
    best = frame.iloc[-1]
    return (
        f"Of {len(frame)} specifications, {up} have an interval above zero and {down} below; the median gain is "
        f"{100 * frame['gain'].median():+.1f} points, the largest {100 * best['gain']:+.1f} ({best['method']} on "
        f"{best['dataset']})."
    )


def markdown(found: Study) -> str:
    """The page: the summary sentence, the table of readings, a paragraph per choice, and where `acc` falls back."""
    names = varied(found.readings)
    heads = ("Reading", "Sets", "Plain training", "Gain of GDM", "Interval", "Collapsed", "Paper's within noise")
    lines = [
        [
            reading_words(row, names),
            str(row["datasets"]),
            f"{100 * row['baseline']:.1f}",
            f"{100 * row['gain']:+.1f}",
            "" if math.isnan(row["low"]) else f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}",
            "" if math.isnan(row["collapse"]) else f"{100 * row['collapse']:.0f} %",
            f"{row['near']} of {row['of']}",
        ]
        for row in found.readings.to_dict(orient="records")
    ]
    parts = ["# Readings of the paper", "", summary_sentence(found), ""]
    parts += ["Ten labels per class. Accuracy in percent; gains are paired by fold, with 95 % intervals.", ""]
    parts += [pipe_table(heads, lines), "", *(text + "\n" for text in paragraphs(found))]
    fallback = found.specifications["fallback"].dropna()
    if len(fallback):
        parts.append(
            f"In {100 * fallback.mean():.0f} % of its trials `gdm-acc` falls back to a median split, which for two "
            "classes is that of `gdm-unc`."
        )
    return "\n".join(parts).rstrip() + "\n"
