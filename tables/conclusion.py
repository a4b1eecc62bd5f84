"""The conclusion at the end of a run: each method compared with plain training, and one summary sentence."""

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
from tables.wording import detectable_sentence, detectable_sizes

PLAIN = "none"
Place = tuple[str, int]  # dataset and label rate: a column


@dataclass(frozen=True)
class Finding:
    """One cell of the table at the end of a run; fractions."""

    value: Summary
    difference: Paired | None
    collapsed: float
    is_plain: bool
    p_holm: float = math.nan

    @property
    def sign(self) -> str:
        """`+` or `-` if the difference is significant after Holm's correction over its column."""
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
        """What can and cannot be concluded."""
        return " ".join(part for part in (self.answer(), self.limits()) if part)

    def answer(self) -> str:
        """Whether a method is better than plain training, before anything else."""
        tested = self._tested()
        if tested:
            return self._significant(tested)
        pairs = [one.difference.n for one in self.findings.values() if one.difference is not None and one.difference.n]
        if pairs:
            return (
                f"Nothing here can be significant: {max(pairs)} paired trials at most, and a test needs {FEWEST} pairs "
                "from at least two folds. A higher mean shows nothing."
            )
        if all(one.is_plain for one in self.findings.values()):
            if len(self.rows) > 1:
                return (
                    "Every row is plain training of another model; `bench tables learners` compares models with plain "
                    "GCN, and -a dropedge adds a method."
                )
            return "This is plain training alone; add a method to compare with it, such as -a dropedge."
        return (
            "Nothing can be said about differences: no method has plain training of the same model beside it "
            f"(add -a {PLAIN})."
        )

    def limits(self) -> str:
        """Which differences are practically none, and how large one must be to be found; empty without a test."""
        tested = [one.difference for one in self._tested() if one.difference is not None]
        if not tested:
            return ""
        equal = sum(one.equal >= 0.95 for one in tested)
        beside = len(tested) - equal
        where = "In 1 of them" if equal == 1 else f"In {equal} of them"
        where = where if len(tested) > 1 else "Here"
        none = f"{where} the difference is practically none (within one point, 95 % sure). " if equal else ""
        sizes = detectable_sizes(tested)
        if not beside or not sizes:
            return none.strip()
        return f"{none}{detectable_sentence(sizes)} Smaller ones can be neither claimed nor ruled out."

    def _tested(self) -> list[Finding]:
        return [one for one in self.findings.values() if one.difference is not None and not math.isnan(one.p_holm)]

    def _significant(self, tested: Sequence[Finding]) -> str:
        gains, losses = self._signed("+"), self._signed("-")
        many = f"{len(tested)} comparisons"
        if len(tested) == 1 and not gains + losses:
            return "The one comparison with plain training shows no significant difference."
        if not gains + losses:
            return f"No method differs significantly from plain training in any of {many}."
        if not gains:
            start = "The only method is not" if len(tested) == 1 else "No method is"
            where = "" if len(tested) == 1 else f" in any of {many}"
            return f"{start} significantly better than plain training{where}; significantly worse: {_listed(losses)}."
        worse = f"; significantly worse: {_listed(losses)}" if losses else ""
        share = "" if len(tested) == 1 else f" in {len(gains)} of {many}"
        return f"Significantly better than plain training{share}: {_listed(gains)}{worse}."

    def _signed(self, sign: str) -> list[str]:
        return [
            f"{name} on {dataset_name(dataset)} at k = {k} ({100 * one.difference.mean:+.1f})"
            for (name, (dataset, k)), one in self.findings.items()
            if one.sign == sign and one.difference is not None
        ]


def _listed(places: Sequence[str], most: int = 3) -> str:
    more = f" and {len(places) - most} more" if len(places) > most else ""
    return f"{', '.join(places[:most])}{more}"


def conclude(
    cells: Iterable[Cell], trials: Callable[[str], Sequence[TrialRecord]], name: Callable[[Cell], str]
) -> Conclusion:
    """The table of some cells; `trials` returns the records of a key, `name` the name of a row."""
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
    """The cell's primary metric, by fold and repeat."""
    found = {(t.fold, t.repeat): value for t in trials if t.done and (value := t.score(metric)) is not None}
    places = pd.MultiIndex.from_tuples(list(found), names=["fold", "repeat"])
    return pd.Series(list(found.values()), index=places, dtype=float)
