"""The words and the digits of a table, before any markup: shared by LaTeX, Markdown and the report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tables.grid import Entry, Grid, shown_percent
from tables.selection import OWN_SPLITS
from tables.specs import MEASURE

KINDS = ("values", "differences", "cost")
NOUNS = {
    "accuracy": "classification accuracy",
    "balanced_accuracy": "balanced classification accuracy",
    "macro_f1": "macro-averaged F1",
}
ABSENT = "--"
REFERENCE = "ref."
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
    """What one cell prints: a main number, what stands small beside it, and how both are set off."""

    main: str
    spread: str = ""
    raised: tuple[str, ...] = ()
    bold: bool = False
    underlined: bool = False

    @property
    def is_number(self) -> bool:
        return self.main not in (ABSENT, REFERENCE)


def shown(entry: Entry, kind: str, mark: str) -> Shown:
    """One cell of one kind of table, in words; with `mark` empty nothing is set off."""
    gap = (f"{entry.value.n}/{entry.planned}",) if entry.incomplete else ()
    if entry.value.n == 0:
        return Shown(ABSENT, raised=gap)
    if kind == "differences":
        return _difference(entry, gap)
    if kind == "cost":
        parts = [p for p in (entry.seconds_augment, entry.seconds_train) if not math.isnan(p)]
        if not parts:
            return Shown(ABSENT, raised=gap)
        part = "" if math.isnan(entry.seconds_augment) else f"({seconds(entry.seconds_augment)})"
        return Shown(seconds(sum(parts)), part, gap)
    spread = "" if math.isnan(entry.value.std) else f"({shown_percent(entry.value.std)})"
    sign = (entry.sign,) if mark == "significance" and entry.sign else ()
    bold = entry.best and (mark in ("best", "ties") or (mark == "significance" and entry.sign == "+"))
    return Shown(shown_percent(entry.value.mean), spread, sign + gap, bold, mark == "ties" and entry.tied)


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
    """A difference in percentage points; no sign on a zero."""
    text = f"{100 * fraction:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text


def seconds(value: float) -> str:
    """Seconds with as many digits as mean something."""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def measure(metric: str, kind: str) -> str:
    """What the numbers are, their unit, and what stands beside them."""
    noun = NOUNS[metric]
    if kind == "differences":
        return (
            f"paired difference of {noun} to plain training, in percentage points "
            "(half the width of the 95 % confidence interval of its mean within brackets)"
        )
    if kind == "cost":
        return "mean seconds of augmentation and training per trial (augmentation alone within brackets)"
    return f"mean {noun} in percent (standard deviation over the trials within brackets)"


def caption(grid: Grid, kind: str = "values") -> str:
    """The paper's caption with the unit, the spread, and the conditions under which the numbers were measured."""
    text = grid.spec.caption.replace(MEASURE, measure(grid.metric, kind))
    sentences = [text[0].upper() + text[1:], *conditions(grid)]
    return " ".join(sentences)


def conditions(grid: Grid) -> list[str]:
    """One sentence each for trials, splits, features and training."""
    context, found = grid.context, []
    if context.planned:
        low, high = context.planned[0], context.planned[-1]
        found.append(f"{low if low == high else f'{low} to {high}'} trials per cell (folds and repeats).")
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


def _split_words(names: tuple[str, ...]) -> str:
    published = [name for name in names if name != OWN_SPLITS]
    words = [f"the published folds of Errica et al. ({', '.join(published)})"] if published else []
    words += ["stratified folds made by this benchmark"] if OWN_SPLITS in names else []
    return f"Splits: {' and '.join(words)}."


def notes(grid: Grid, kind: str = "values") -> list[str]:
    """What a reader must know to read the marks; nothing that does not occur in this table."""
    found = []
    if any(entry.incomplete for entry in grid.entries):
        found.append("n/N: only n of the N planned trials are finished.")
    if any(entry.value.n == 0 for entry in grid.entries):
        found.append(f"{ABSENT}: no finished trial.")
    if kind == "values":
        found += _mark_notes(grid)
    elif kind == "differences":
        row = grid.spec.reference
        what = f"the row {row.name}" if row else "plain training of the same model"
        found.append(f"Reference ({REFERENCE}): {what}; {ABSENT} where that was not run.")
        if any(entry.sign for entry in grid.entries):
            found.append("*: p < 0.05, Wilcoxon signed-rank over the trials, Holm's correction over the methods.")
    if OWN_SPLITS in grid.context.splits:
        found.append(
            "Stratified folds of this benchmark's own, not the published ones: "
            "no trial-by-trial comparison with published numbers."
        )
    found += [UNPAIRED] if grid.context.unpaired else []
    found += [f"Cells differ in {words}." for words in grid.context.mixed]
    return found


def _mark_notes(grid: Grid) -> list[str]:
    within = " of its group of rows" if len(grid.groups) > 1 else ""
    if grid.mark == "significance":
        found = []
        if any(entry.sign for entry in grid.entries):
            found.append(
                "+, -: above or below plain training, p < 0.05 (Wilcoxon signed-rank over the trials, Holm's "
                "correction over the methods)."
            )
        return [*found, f"Bold: the best{within}, where that is significantly above plain training."]
    if not any(entry.best for entry in grid.entries):
        return []
    if grid.mark == "ties":
        return [
            f"Bold: the best{within}; underlined: not significantly below it (Wilcoxon signed-rank over the "
            "trials at 5 %, Holm's correction)."
        ]
    return [f"Bold: the best{within}; a higher mean alone is no evidence of a difference."]
