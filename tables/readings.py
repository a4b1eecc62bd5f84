"""The results of each reading of the paper: the plain baseline, GDM's gain over it, collapse, and the paper's numbers.

A *reading* is one level for each choice that the paper leaves open. A *specification* is a reading of one method on one
dataset, compared with plain training under the same reading.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bench.plan.cells import Cell
from bench.registry import UserError, show
from bench.results.frame import RANKED, planned_trials
from bench.results.ledger import LedgerState
from bench.results.summary import collapsed_share
from tables.compare import OPEN, WITHIN, Compared
from tables.formats import pipe_table
from tables.paper import Number, numbers
from tables.specs import LONG_NAMES, Coordinate
from tables.statistics import error_over_folds, interval, paired, summary

METHODS = ("gdm-rand", "gdm-acc", "gdm-unc")
BASELINE_CHOICES = ("head", "features", "select", "loss", "batch", "norm")  # choices that also apply to plain training
OWN_CHOICES = ("start", "count", "output", "padding", "alignment", "generated")  # choices that apply only to GDM
CHOICES = (*BASELINE_CHOICES, "epochs", *OWN_CHOICES)
NATIVE = "native"
USUAL = {"select": "last", "loss": "sum", "batch": "0", "norm": "none", "epochs": "800", "start": "fresh", "count": "1"}
USUAL |= {"output": "linear", "padding": "embeddings", "alignment": "random", "generated": "once"}
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

LARGE = ("DD", "REDDIT-MULTI-5K")  # sets on which the study varies the preset alone
_READ = (
    "Ten labels per class; GCN with a mean readout. Accuracy in percent; gains are paired by fold, with 95 % "
    "intervals. A reading's name has its head, its features, and what else is not as usual. "
    "`head=relu` with one-hot degrees is the preset `paper`, `head=linear` with a constant `standard`. Only rows over "
    "the same sets and methods of GDM can be compared. Trials: of the specification that has the fewest, n/N where "
    "some are missing. Collapsed: share of the trials of plain training that put all test graphs into one class. In "
    "the figure a gain is blue where its interval lies above zero, orange where it lies below."
)


@dataclass(frozen=True)
class Study:
    """All specifications of a ledger, one row each, and the table of readings over them."""

    specifications: pd.DataFrame
    readings: pd.DataFrame
    holes: tuple[str, ...]  # what is not measured, in words


def study(state: LedgerState, holes: Sequence[str] = ()) -> Study:
    """Every GDM cell at ten labels per class with its baseline, on the trials that both have.

    Cells with trials still to run are left out: their first folds are no sample of all. `holes` says what is missing.
    """
    held = list(_held(state))
    _refuse_doubles(held)
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
        raise UserError(
            "no finished GDM cell at k=10 has plain training of the same reading beside it; run --grid readings"
        )
    frame = pd.DataFrame(rows).sort_values(["gain", "dataset", "method", *CHOICES], ignore_index=True)
    return Study(frame, _by_reading(frame), tuple(holes))


def _refuse_doubles(held: Iterable[Mapping[str, Any]]) -> None:
    """Two cells of one reading would be mixed, or one of them chosen, in silence."""
    seen: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for one in held:
        place = (one["dataset"], one["method"], *(one.get(name) for name in CHOICES))
        other = seen.setdefault(place, one)
        if other is not one:
            what = "splits" if other["splits"] != one["splits"] else "versions or labels"
            raise UserError(
                f"{one['dataset']} has two {one['method']} cells of one reading that differ in {what} "
                f"({other['key']}, {one['key']}); keep one of them in a workspace of its own"
            )


def _held(state: LedgerState) -> Iterator[dict[str, Any]]:
    """The study's cells with their levels and scores by fold and repeat."""
    planned = planned_trials(state)
    for key, cell in state.cells.items():
        if cell.tuned or cell.k != 10 or cell.backbone is None or cell.readout is None:
            continue
        if cell.backbone.name != "gcn" or cell.readout.label != "mean" or cell.learner.name != "gnn":
            continue
        levels = levels_of(cell)
        done = [one for one in state.trials.get(key, {}).values() if one.done]
        if levels is None or not done or len(state.trials[key]) < len(planned[key]):
            continue
        index = pd.MultiIndex.from_tuples([(one.fold, one.repeat) for one in done], names=["fold", "repeat"])
        values = pd.Series([one.accuracy for one in done], index=index, dtype=float)
        fallback = float(np.mean([one.generated.get(RANKED, 0.0) > 0 for one in done]))
        yield {
            **levels,
            "key": key,
            "splits": cell.splits,
            "planned": len(planned[key]),
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
    if augmenter.name not in METHODS or levels["epochs"] != USUAL["epochs"]:
        return None
    own = {name: show(augmenter.settings[name]) for name in OWN_CHOICES if name in augmenter.settings}
    written = augmenter.label.partition(":")[2]
    if any(part.partition("=")[0] not in OWN_CHOICES for part in written.split(",") if part):
        return None
    return {**levels, **own}


def _place(one: Mapping[str, Any], with_epochs: bool = False) -> tuple[Any, ...]:
    names = (*BASELINE_CHOICES, "epochs") if with_epochs else BASELINE_CHOICES
    return (one["dataset"], one["splits"], *(one[name] for name in names))


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
        "planned": max(one["planned"], plain["planned"]),
        "papers_gain": _papers_gain(one["dataset"], one["method"]),
        "by_fold": by_fold,
    }


def _near(dataset: str, method: str, values: pd.Series[float]) -> float:
    """1 if the paper's number of the same place lies within noise, 0 if not, not a number where it has none."""
    theirs = _papers(dataset, method)
    if theirs is None:
        return math.nan
    found = Compared(theirs, summary(values), len(values), (), *error_over_folds(values))
    return math.nan if found.verdict == OPEN else float(found.verdict == WITHIN)


def _papers(dataset: str, method: str) -> Number | None:
    """The paper's number at ten labels per class."""
    return next((n for n in numbers() if n.coordinate == Coordinate(dataset, 10, method)), None)


def _papers_gain(dataset: str, method: str) -> float:
    """The paper's gain over its plain GCN, a fraction; not a number where it has none."""
    theirs, plain = _papers(dataset, method), _papers(dataset, "none")
    return math.nan if theirs is None or plain is None else (theirs.mean - plain.mean) / 100


def _by_reading(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per reading, over datasets and methods; sets with features of their own serve every level of those.

    The large sets, of which the study has few readings, have rows of their own: the others are then over the same sets.
    """
    social = [level for level in frame["features"].unique() if level != NATIVE]
    rows = []
    rest = [name for name in CHOICES if name != "features"]
    for (*levels, _), part in frame.groupby([*rest, frame["dataset"].isin(LARGE)], sort=False):
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
                    "datasets": ", ".join(LONG_NAMES.get(name, name) for name in sorted(plain["dataset"])),
                    "methods": ", ".join(sorted({name.removeprefix("gdm-").capitalize() for name in chosen["method"]})),
                    "specifications": len(chosen),
                    "trials": int(chosen["trials"].min()),
                    "planned": int(chosen["planned"].max()),
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


def reading_words(row: Mapping[Any, Any]) -> str:
    """What a reading is called: its head, its features, and what else is not as usual."""
    return ", ".join(f"{name}={row[name]}" for name in CHOICES if row[name] != USUAL.get(name))


@dataclass(frozen=True)
class Change:
    """What one level in the place of another changes, where all else is equal; means of differences, fractions."""

    choice: str
    first: str
    second: str
    pairs: int  # of specifications
    gain: float
    baselines: int  # pairs of plain trainings, each once
    baseline: float

    @property
    def words(self) -> str:
        """One sentence; plain training is left out where it has no such choice."""
        plain = ""
        if self.choice not in OWN_CHOICES:
            pairs = _counted(self.baselines, "pair")
            plain = f"plain training changes by {100 * self.baseline:+.1f} points ({pairs}) and "
        return (
            f"From {self.first} to {self.second}, all else equal, {plain}the gain of GDM "
            f"{'' if plain else 'changes '}by {100 * self.gain:+.1f}{'' if plain else ' points'} "
            f"({_counted(self.pairs, 'pair')} of specifications)."
        )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def changes(found: Study) -> list[Change]:
    """Every two levels of every choice, over the specifications that are equal otherwise."""
    frame, held = found.specifications, []
    for choice in varied(frame):
        rest = [name for name in ("dataset", "method", *CHOICES) if name != choice]
        of_plain = ["dataset", *(name for name in (*BASELINE_CHOICES, "epochs") if name != choice)]
        usual = USUAL.get(choice)
        levels = sorted((one for one in frame[choice].unique() if one != NATIVE), key=lambda one: _order(one, usual))
        for first, second in itertools.combinations(levels, 2):
            a, b = (frame[frame[choice] == level].set_index(rest) for level in (first, second))
            both = a.index.intersection(b.index)
            if both.empty:
                continue
            plain = (b.loc[both, "baseline"] - a.loc[both, "baseline"]).groupby(level=of_plain).first()
            gain = float((b.loc[both, "gain"] - a.loc[both, "gain"]).mean())
            held.append(Change(choice, first, second, len(both), gain, len(plain), float(plain.mean())))
    return held


def _order(level: str, usual: str | None) -> tuple[bool, float, str]:
    """The usual level first, then numbers by their size, then words."""
    return level != usual, float(level) if level.replace(".", "", 1).isdigit() else math.inf, level


def paragraphs(found: Study) -> list[str]:
    """One paragraph per choice."""
    by_choice = itertools.groupby(changes(found), key=lambda one: one.choice)
    return [f"**{_WORDS[name]}** (`{name}`). {' '.join(one.words for one in part)}" for name, part in by_choice]


def summary_sentences(found: Study) -> list[str]:
    """How many specifications show a gain, or one of the paper's size, and which choice moves plain training most."""
    frame = found.specifications
    up, down = int((frame["low"] > 0).sum()), int((frame["high"] < 0).sum())
    best = frame.iloc[-1]
    said = [
        f"Of {_counted(len(frame), 'specification')}, {up} have an interval above zero and {down} below; the median "
        f"gain is {100 * frame['gain'].median():+.1f} points, the largest {100 * best['gain']:+.1f} ({best['method']} "
        f"on {best['dataset']})."
    ]
    told = frame.dropna(subset=["papers_gain", "high"])
    if len(told):
        size, reached = told["papers_gain"].mean(), int((told["high"] >= told["papers_gain"]).sum())
        said.append(
            f"The paper has a gain for {len(told)} of them, {100 * size:+.1f} points on average: "
            f"{int((told['gain'] >= told['papers_gain']).sum())} show as large a one, and {reached} have an interval "
            "that reaches it."
        )
    moved = [one for one in changes(found) if one.choice not in OWN_CHOICES]
    if moved:
        most = max(moved, key=lambda one: abs(one.baseline))
        said.append(
            f"Plain training is moved most by `{most.choice}`: {100 * most.baseline:+.1f} points from {most.first} to "
            f"{most.second} (mean of {_counted(most.baselines, 'pair')})."
        )
    return said


def markdown(found: Study) -> str:
    """The page: what holds in sum, what is missing, the table of readings, a paragraph per choice, `acc`'s fallback."""
    heads = ["Reading", "Sets", "GDM", "Trials", "Plain training", "Gain of GDM", "Interval", "Collapsed"]
    heads += ["Paper's within noise"]
    lines = [
        [
            reading_words(row),
            row["datasets"],
            row["methods"],
            str(row["trials"]) + (f"/{row['planned']}" if row["trials"] < row["planned"] else ""),
            f"{100 * row['baseline']:.1f}",
            f"{100 * row['gain']:+.1f}",
            "" if math.isnan(row["low"]) else f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}",
            "" if math.isnan(row["collapse"]) else f"{100 * row['collapse']:.0f} %",
            f"{row['near']} of {row['of']}",
        ]
        for row in found.readings.to_dict(orient="records")
    ]
    parts = ["# Readings of the paper", "", " ".join(summary_sentences(found)), ""]
    parts += [" ".join(found.holes), ""] if found.holes else []
    parts += [_READ, ""]
    parts += [pipe_table(heads, lines), "", *(text + "\n" for text in paragraphs(found))]
    fallback = found.specifications["fallback"].dropna()
    if len(fallback):
        parts.append(
            f"In {100 * fallback.mean():.0f} % of its trials `gdm-acc` falls back to a median split, which for two "
            "classes is that of `gdm-unc`."
        )
    return "\n".join(parts).rstrip() + "\n"
