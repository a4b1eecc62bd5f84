"""The words and digits of a table, before any markup; shared by LaTeX, Markdown and the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tables.grid import Entry, Grid, shown_percent
from tables.selection import OWN_SPLITS
from tables.specs import LONG_NAMES, MEASURE
from tables.statistics import ALPHA, FEWEST, REGION, Paired, Pooled, holm, pooled

KINDS = ("values", "differences", "equivalence", "cost")
TEST = "Student's t over the means of the folds"
NOUNS = {
    "accuracy": "classification accuracy",
    "balanced_accuracy": "balanced classification accuracy",
    "macro_f1": "macro-averaged F1",
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
}
PUBLISHED_FAMILIES = ("CHEMICAL", "COLLABORATIVE_1", "COLLABORATIVE_DEGREE")
ABSENT = "--"
REFERENCE = "ref."
COLLAPSED = "c: percent of the trials that put all test graphs into one class."
UNPAIRED = (
    "Tuned rows share folds and labeled graphs with the rows they are compared with, "
    "but not the initial weights where the width or number of layers differs."
)
_FEATURES = {
    "native": "the dataset's own node labels",
    "constant": "a constant where the dataset has none",
    "degree-onehot": "one-hot degrees where the dataset has none",
    "degree": "the degree where the dataset has none",
}


@dataclass(frozen=True)
class Shown:
    """What a cell prints: a main number, smaller text next to it, and how both are emphasized."""

    main: str
    spread: str = ""
    raised: tuple[str, ...] = ()
    bold: bool = False
    underlined: bool = False

    @property
    def is_number(self) -> bool:
        return self.main not in (ABSENT, REFERENCE)


def shown(entry: Entry, kind: str, mark: str) -> Shown:
    """One cell of one kind of table, in words; with an empty `mark`, nothing is emphasized."""
    gap = (f"{entry.value.n}/{entry.planned}",) if entry.incomplete else ()
    if entry.value.n == 0:
        return Shown(ABSENT, raised=gap)
    if kind == "differences":
        return _difference(entry, gap)
    if kind == "equivalence":
        return _three_way(entry, gap)
    if kind == "cost":
        parts = [p for p in (entry.seconds_augment, entry.seconds_train) if not math.isnan(p)]
        if not parts:
            return Shown(ABSENT, raised=gap)
        part = "" if math.isnan(entry.seconds_augment) else f"({seconds(entry.seconds_augment)})"
        return Shown(seconds(sum(parts)), part, (*collapse_words(entry), *gap))
    spread = "" if math.isnan(entry.value.std) else f"({shown_percent(entry.value.std)})"
    sign: tuple[str, ...] = (entry.sign,) if mark == "significance" and entry.sign else ()
    bold = entry.best and (mark in ("best", "ties") or (mark == "significance" and entry.sign == "+"))
    return Shown(shown_percent(entry.value.mean), spread, sign + gap, bold, mark == "ties" and entry.tied)


def collapse_words(entry: Entry) -> tuple[str, ...]:
    """The share of collapsed trials, if there are any."""
    share = "" if math.isnan(entry.collapsed) else f"{100 * entry.collapsed:.0f}"
    return () if not share or not entry.collapsed else (f"c{share if share != '0' else '<1'}",)


def _three_way(entry: Entry, gap: tuple[str, ...]) -> Shown:
    found = entry.difference
    if found is None or math.isnan(found.better):
        return Shown(REFERENCE if entry.is_reference else ABSENT, raised=gap)
    return Shown(three_way_words(found.worse, found.equal, found.better), raised=gap)


def three_way_words(worse: float, equal: float, better: float) -> str:
    """Three probabilities in whole percent that add up to 100."""
    shares = [100 * worse, 100 * equal, 100 * better]
    whole = [math.floor(share) for share in shares]
    for place in sorted(range(3), key=lambda place: whole[place] - shares[place])[: 100 - sum(whole)]:
        whole[place] += 1
    return "/".join(map(str, whole))


def _difference(entry: Entry, gap: tuple[str, ...]) -> Shown:
    if entry.difference is None:
        return Shown(REFERENCE if entry.is_reference else ABSENT, raised=gap)
    if entry.difference.n == 0:
        return Shown(ABSENT, raised=gap)
    half = (entry.difference.high - entry.difference.low) / 2
    interval = "" if math.isnan(half) else f"(±{shown_percent(half)})"
    star = ("*",) if entry.sign else ()
    return Shown(signed(entry.difference.mean), interval, star + gap)


def signed(fraction: float) -> str:
    """A difference in percentage points; zero has no sign."""
    text = f"{100 * fraction:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text


def seconds(value: float) -> str:
    """Seconds with a meaningful number of digits."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def noun(metric: str) -> str:
    """A metric as displayed."""
    return NOUNS.get(metric, metric.replace("_", " "))


def measure(metric: str, kind: str) -> str:
    """What the numbers are, their unit, and what is printed next to them."""
    what = noun(metric)
    if kind == "differences":
        return (
            f"paired difference of {what} to plain training, in percentage points "
            f"(half the width of its 95 % confidence interval within brackets, {TEST})"
        )
    if kind == "equivalence":
        return (
            f"probabilities in percent that a method's {what} is worse than that of plain training by more than "
            f"{100 * REGION:g} point / within it / better by more"
        )
    if kind == "cost":
        return "mean seconds of augmentation and training per trial (augmentation alone within brackets)"
    return f"mean {what} in percent (standard deviation over the trials within brackets)"


def caption(grid: Grid, kind: str = "values") -> str:
    """The paper's caption with the unit, the spread, and the conditions under which the numbers were measured."""
    text = grid.spec.caption.replace(MEASURE, measure(grid.metric, kind))
    sentences = [text[0].upper() + text[1:], *conditions(grid)]
    if kind != "cost" and (words := detectable_words(entry.difference for entry in grid.entries)):
        sentences.append(words)
    return " ".join(sentences)


def conditions(grid: Grid) -> list[str]:
    """One sentence each about trials, splits, features and training."""
    context, found = grid.context, []
    if context.planned:
        low, high = context.planned[0], context.planned[-1]
        found.append(f"{low if low == high else f'{low} to {high}'} trials per cell (folds and repeats).")
    if context.absent:
        names = ", ".join(LONG_NAMES.get(name, name) for name in context.absent)
        found.append(f"Not run: {names}.")
    if context.left_out:
        found.append(f"{context.left_out} more label draws per fold are on record and not used here.")
    if context.splits:
        found.append(_split_words(context.splits))
    if context.features:
        found.append(f"Node features: {', '.join(_FEATURES.get(name, name) for name in context.features)}.")
    if context.training:
        found.append(f"Training: {', '.join(context.training)}.")
    if context.validation:
        found.append("The epoch was chosen on the fold's validation part: its labels were used beyond the k per class.")
    found += [f"Tuned: {words}." for words in context.tuning]
    return found


@dataclass(frozen=True)
class PooledLine:
    """A row of a table over all its datasets at one label rate."""

    row: str
    k: int
    found: Pooled
    p_holm: float  # over all lines


def pooled_lines(grid: Grid) -> list[PooledLine]:
    """Differences to plain training over the datasets of a table; only datasets that every row has.

    A row without any difference is the reference, or was not run, and does not exclude datasets.
    """
    found: list[tuple[str, int, Pooled]] = []
    for k in sorted({column.k for column in grid.spec.columns}):
        places = [place for place, column in enumerate(grid.spec.columns) if column.k == k]
        rows = [line for line in grid.lines if any(_tested(line.entries[place]) for place in places)]
        shared = [place for place in places if all(_tested(line.entries[place]) for line in rows)]
        for line in rows:
            over = pooled([d for place in shared if (d := line.entries[place].difference) is not None])
            found += [(line.name, k, over)] if over is not None else []
    adjusted = holm([over.p for _, _, over in found])
    return [PooledLine(*one, p) for one, p in zip(found, adjusted, strict=True)]


def _tested(entry: Entry) -> bool:
    return entry.difference is not None and not math.isnan(entry.difference.error)


def pooled_notes(lines: Sequence[PooledLine]) -> list[str]:
    """How to read a pooled table."""
    return [
        "Mean of the paired differences to plain training over the datasets that every row has, each counting the "
        "same, in percentage points, with its 95 % interval (Student's t over the means of the folds, Welch and "
        f"Satterthwaite's degrees of freedom); p with Holm's correction over the {len(lines)} lines. The interval is "
        "about these datasets.",
        f"Worse / equal / better: probabilities in percent for the mean over datasets like these, with a region of "
        f"{100 * REGION:g} point; effects may differ between datasets.",
    ]


def detectable_words(differences: Iterable[Paired | None]) -> str:
    """Which differences a table can detect; empty if unknown."""
    sizes = sorted(d.detectable for d in differences if d is not None and not math.isnan(d.p))
    if not sizes:
        return ""
    low, high = (f"{100 * sizes[place]:.1f}" for place in (0, -1))
    span = low if low == high else f"{low} to {high}"
    return f"A difference to plain training is found 4 times in 5 if it is at least {span} points."


def _split_words(names: tuple[str, ...]) -> str:
    published = [name for name in names if name in PUBLISHED_FAMILIES]
    others = [name for name in names if name not in PUBLISHED_FAMILIES and name != OWN_SPLITS]
    words = [f"the published folds of Errica et al. ({', '.join(published)})"] if published else []
    words += [f"folds of the user's own ({', '.join(others)})"] if others else []
    words += ["stratified folds made by this benchmark"] if OWN_SPLITS in names else []
    return f"Splits: {' and '.join(words)}."


def notes(grid: Grid, kind: str = "values") -> list[str]:
    """How to read the marks, as far as they occur in this table."""
    found = []
    if any(entry.incomplete for entry in grid.entries):
        found.append("n/N: only n of the N planned trials are finished.")
    if any(entry.value.n == 0 for entry in grid.entries):
        found.append(f"{ABSENT}: no finished trial.")
    if kind == "cost" and any(collapse_words(entry) for entry in grid.entries):
        found.append(COLLAPSED)
    if kind == "values":
        found += _mark_notes(grid)
        found += _collapse_note(grid)
    elif kind == "differences":
        row = grid.spec.reference
        what = f"the row {row.name}" if row else "plain training of the same model"
        found.append(f"Reference ({REFERENCE}): {what}; {ABSENT} where that was not run.")
        if any(entry.sign for entry in grid.entries):
            found.append(f"*: p < 0.05, {TEST}, Holm's correction over the methods of a column.")
        found += whole_table(grid)
    elif kind == "equivalence":
        found.append("Posterior of the mean difference under a flat prior, from the same means of folds.")
    if OWN_SPLITS in grid.context.splits:
        found.append(
            "Stratified folds of this benchmark's own, not the published ones: "
            "no trial-by-trial comparison with published numbers."
        )
    found += [UNPAIRED] if grid.context.unpaired else []
    found += [f"Cells differ in {words}." for words in grid.context.mixed]
    return found


def whole_table(grid: Grid) -> list[str]:
    """How many of the table's differences are significant jointly, or that none can be."""
    differences = [entry.difference for entry in grid.entries if entry.difference is not None and entry.difference.n]
    tests = [entry.p_table for entry in grid.entries if not math.isnan(entry.p_table)]
    if differences and not tests:
        return [f"Fewer than {FEWEST} pairs or two folds: nothing here can be significant."]
    few = [d for d in differences if math.isnan(d.p)]
    found = [f"{len(few)} differences rest on fewer than {FEWEST} pairs or two folds: not tested."] if few else []
    if len(tests) > 1:
        kept = sum(p < ALPHA for p in tests)
        found.append(f"With Holm's correction over all {len(tests)} differences of the table, {kept or 'none'} remain.")
    return [words.replace("none remain", "none remains").replace(", 1 remain.", ", 1 remains.") for words in found]


def _collapse_note(grid: Grid) -> list[str]:
    """A mean over collapsed trials is not a mean of models: said once; the cost table has the share for each cell."""
    touched = [entry.collapsed for entry in grid.entries if entry.collapsed > 0]
    if not touched:
        return []
    cells = "one cell holds" if len(touched) == 1 else f"{len(touched)} cells hold"
    most = f"up to {100 * max(touched):.0f} % of a cell's trials"
    return [f"Collapsed: {cells} trials that put all test graphs into one class ({most}; see the cost table)."]


def _mark_notes(grid: Grid) -> list[str]:
    within = " of its group of rows" if len(grid.groups) > 1 else ""
    if grid.mark == "significance":
        found = []
        if any(entry.sign for entry in grid.entries):
            found.append(
                f"+, -: above or below plain training, p < 0.05 ({TEST}, Holm's correction over the methods of a "
                "column)."
            )
        found += whole_table(grid)
        return [*found, f"Bold: the best{within}, where that is significantly above plain training."]
    if not any(entry.best for entry in grid.entries):
        return []
    if grid.mark == "ties":
        return [f"Bold: the best{within}; underlined: not significantly below it ({TEST}, at 5 %, Holm's correction)."]
    return [f"Bold: the best{within}; a higher mean alone is no evidence of a difference."]
