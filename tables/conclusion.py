"""What the trials of a run say when it ends: each method beside its plain training, and one sentence about it all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from bench.plan.cells import Cell
from bench.results.records import TrialRecord
from bench.results.summary import collapsed_share
from tables.statistics import ALPHA, FEWEST, Paired, Summary, holm, paired, summary
from tables.style import dataset_name

PLAIN = "none"
Place = tuple[str, int]  # dataset and label rate: a column


@dataclass(frozen=True)
class Finding:
    """One cell of the table at a run's end; fractions."""

    value: Summary
    difference: Paired | None
    collapsed: float
    is_plain: bool
    p_holm: float = math.nan

    @property
    def sign(self) -> str:
        """`+` or `-` where the difference is significant after Holm's correction over its column."""
        if self.difference is None or math.isnan(self.p_holm) or self.p_holm >= ALPHA:
            return ""
        return "+" if self.difference.mean > 0 else "-"


@dataclass(frozen=True)
class Conclusion:
    """Rows by name, columns by dataset and label rate."""

    rows: tuple[str, ...]
    columns: tuple[Place, ...]
    findings: Mapping[tuple[str, Place], Finding]

    def sentence(self) -> str:
        """What can be concluded, and what cannot."""
        differences = [one for one in self.findings.values() if one.difference is not None and one.difference.n]
        if not differences:
            if self.findings and all(one.is_plain for one in self.findings.values()):
                return "This is plain training alone; add a method to compare with it, such as -a dropedge."
            return (
                "Nothing can be said about differences: no method has plain training of the same model beside it "
                f"(add -a {PLAIN})."
            )
        tested = [one for one in differences if not math.isnan(one.p_holm)]
        if not tested:
            pairs = max(one.difference.n for one in differences if one.difference is not None)
            return (
                f"Nothing here can be significant: {pairs} paired trials at most, and a test needs {FEWEST} pairs from "
                "at least two folds. A higher mean shows nothing."
            )
        return f"{self._significant(tested)} {self._limits(tested)}"

    def _significant(self, tested: Sequence[Finding]) -> str:
        signs = [
            (name, place, one)
            for (name, place), one in self.findings.items()
            if one.sign and one.difference is not None
        ]
        whole = "difference to plain training" if len(tested) == 1 else "differences to plain training"
        if not signs:
            return f"None of {len(tested)} {whole} is significant."
        words = [
            f"{name} on {dataset_name(dataset)} at k = {k} ({100 * one.difference.mean:+.1f})"
            for name, (dataset, k), one in signs[:3]
            if one.difference is not None
        ]
        more = f" and {len(signs) - 3} more" if len(signs) > 3 else ""
        verb = "is" if len(signs) == 1 else "are"
        return f"{len(signs)} of {len(tested)} {whole} {verb} significant: {', '.join(words)}{more}."

    def _limits(self, tested: Sequence[Finding]) -> str:
        spread = [one.difference for one in tested if one.difference is not None]
        # where both sides are constant, as collapsed models are, there is no spread to detect anything against
        sizes = sorted(d.detectable for d in spread if d.error) or [0.0]
        low, high = (f"{100 * sizes[place]:.1f}" for place in (0, -1))
        none = sum(one.difference.equal >= 0.95 for one in tested if one.difference is not None)
        equal = (
            f"{none} {'is' if none == 1 else 'are'} practically none (within one point, 95 % sure); " if none else ""
        )
        span = low if low == high else f"{low} to {high}"
        return (
            f"{equal[:1].upper()}{equal[1:]}{'a' if equal else 'A'} difference of {span} points would be found 4 times "
            "in 5, smaller ones can be neither claimed nor ruled out."
        )


def conclude(
    cells: Iterable[Cell], trials: Callable[[str], Sequence[TrialRecord]], name: Callable[[Cell], str]
) -> Conclusion:
    """The table of some cells; `trials` gives the records of a key, `name` a row's name."""
    held = list(cells)
    values = {cell.key: _values(trials(cell.key), cell.metric) for cell in held}
    plain = {_model(cell): cell for cell in held if _is_plain(cell)}
    found: dict[tuple[str, Place], Finding] = {}
    for cell in held:
        reference = plain.get(_model(cell))
        difference = None
        if reference is not None and not _is_plain(cell) and len(values[cell.key]):
            difference = paired(values[cell.key], values[reference.key])
        share = collapsed_share(trials(cell.key))
        finding = Finding(summary(values[cell.key]), difference, share, _is_plain(cell))
        found[name(cell), (cell.dataset, cell.k)] = finding
    columns = tuple(dict.fromkeys(place for _, place in found))
    for place in columns:
        keys = [key for key in found if key[1] == place]
        corrected = holm([d.p if (d := found[key].difference) is not None else math.nan for key in keys])
        found |= {key: replace(found[key], p_holm=p) for key, p in zip(keys, corrected, strict=True)}
    return Conclusion(tuple(dict.fromkeys(row for row, _ in found)), columns, found)


def _is_plain(cell: Cell) -> bool:
    return (cell.tuned_from or {}).get("augmenter", cell.augmenter.name) == PLAIN


def _model(cell: Cell) -> tuple[object, ...]:
    """What a method and its plain training have in common."""
    base = cell.tuned_from or {}
    model = base.get("backbone", cell.part_label("backbone")), cell.part_label("readout"), cell.learner.name
    training = None if cell.tuned else tuple(sorted(cell.to_json()["training"].items()))
    return cell.dataset, cell.k, cell.features, cell.splits, *model, cell.tuned_how, training


def _values(trials: Sequence[TrialRecord], metric: str | None) -> pd.Series[float]:
    """What the cell is judged by, by fold and repeat."""
    found = {(t.fold, t.repeat): value for t in trials if t.done and (value := t.score(metric)) is not None}
    places = pd.MultiIndex.from_tuples(list(found), names=["fold", "repeat"])
    return pd.Series(list(found.values()), index=places, dtype=float)
