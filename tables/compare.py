"""Our results against the paper's: cell by cell, whether the difference is within noise, and overall."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scipy import stats

from bench.registry import UserError
from tables.formats import escape as markdown_escape
from tables.formats import pipe_table
from tables.grid import Request, draws_used
from tables.latex import environment
from tables.paper import TRIALS, Contradiction, Number, contradictions, numbers
from tables.selection import Index, preset_of
from tables.specs import LONG_NAMES, TABLES
from tables.statistics import LEVEL, Summary, error_over_folds, summary
from tables.wording import COLLAPSED, signed

HEADS = ("Table", "Row", "Dataset", "k", "Ours", "Paper", "Diff.", "±", "Verdict")
COMPARABLE = ("paper", "standard")  # trainings that may be compared with the paper
WITHIN, OUTSIDE, OPEN = "within", "outside", "too few"


class NothingToCompare(UserError):
    """No result can be compared with a number of the paper."""


@dataclass(frozen=True)
class Compared:
    """One number of the paper and ours; in percent."""

    theirs: Number
    ours: Summary  # fractions
    planned: int
    contradictions: tuple[Contradiction, ...]
    folds: int
    error: float  # standard error of our mean over folds, as a fraction
    collapsed: float = math.nan

    @property
    def row(self) -> str:
        """The paper's name of the row, with an addition that distinguishes rows of the same name in a table."""
        rows, place = [row.name for row in TABLES[self.theirs.table].rows], self.theirs.coordinate
        if rows.count(self.theirs.row) == 1:
            return self.theirs.row
        if place.backbone != "gcn":
            return f"{self.theirs.row} ({place.backbone.upper()})"
        return f"{place.augmenter.partition(':')[0].removeprefix('gdm-').capitalize()} {self.theirs.row}"

    @property
    def difference(self) -> float:
        return 100 * self.ours.mean - self.theirs.mean

    @property
    def noise(self) -> float:
        """Half of the 95 % interval of the difference, with standard errors over folds (ours) and 30 trials (theirs).

        Uses Welch-Satterthwaite degrees of freedom; a single fold has no standard error.
        """
        ours, theirs = 100 * self.error, self.theirs.std / math.sqrt(TRIALS)
        if math.isnan(ours):
            return math.nan
        if not ours and not theirs:
            return 0.0
        freedom = (ours**2 + theirs**2) ** 2 / (ours**4 / (self.folds - 1) + theirs**4 / (TRIALS - 1))
        return float(stats.t.ppf((1 + LEVEL) / 2, freedom)) * math.hypot(ours, theirs)

    @property
    def our_half(self) -> float:
        """Half of the 95 % interval of our mean."""
        return float(stats.t.ppf((1 + LEVEL) / 2, max(self.folds - 1, 1))) * 100 * self.error

    @property
    def their_half(self) -> float:
        """Half of the 95 % interval of the paper's mean, from its standard deviation over 30 trials."""
        return float(stats.t.ppf((1 + LEVEL) / 2, TRIALS - 1)) * self.theirs.std / math.sqrt(TRIALS)

    @property
    def verdict(self) -> str:
        if math.isnan(self.noise):
            return OPEN
        return WITHIN if abs(self.difference) <= self.noise else OUTSIDE

    @property
    def our_words(self) -> str:
        text = f"{100 * self.ours.mean:.1f}"
        text += "" if math.isnan(self.ours.std) else f" ({100 * self.ours.std:.1f})"
        text += f" c{100 * self.collapsed:.0f}" if self.collapsed > 0 else ""
        return text + (f" {self.ours.n}/{self.planned}" if self.ours.n < self.planned else "")

    @property
    def their_words(self) -> str:
        return f"{self.theirs.mean:.1f} ({self.theirs.std:.1f})"

    def words(self) -> list[str]:
        """The cells of one line of output."""
        noise = "" if math.isnan(self.noise) else f"{self.noise:.1f}"
        place = self.theirs.coordinate
        return [
            self.theirs.table,
            self.row,
            LONG_NAMES[place.dataset],
            str(place.k),
            self.our_words,
            self.their_words,
            signed(self.difference / 100),
            noise,
            self.verdict + (" !" if self.contradictions else ""),
        ]


@dataclass(frozen=True)
class Comparison:
    """Everything that could be compared, and how much of the paper that is."""

    lines: tuple[Compared, ...]
    missing: int
    settings: str
    conditions: tuple[str, ...]

    @property
    def touched(self) -> list[Contradiction]:
        """The paper's contradictions that affect a compared cell, each once."""
        return list(dict.fromkeys(found for line in self.lines for found in line.contradictions))

    def verdicts(self) -> dict[str, int]:
        return {name: sum(line.verdict == name for line in self.lines) for name in (WITHIN, OUTSIDE, OPEN)}

    def sums(self) -> list[str]:
        """A summary in a few sentences."""
        counts, n = self.verdicts(), len(self.lines)
        mean = sum(line.difference for line in self.lines) / n
        absolute = sum(abs(line.difference) for line in self.lines) / n
        found = [
            f"{counts[WITHIN]} of {n} compared numbers are within noise ({100 * LEVEL:.0f} % interval of the "
            f"difference, both standard errors combined), {counts[OUTSIDE]} are outside"
            + (f", {counts[OPEN]} have too few trials to tell." if counts[OPEN] else "."),
            f"Ours minus the paper's: {mean:+.1f} points on average, {absolute:.1f} in absolute value.",
        ]
        collapsed = [line.collapsed for line in self.lines if line.collapsed > 0]
        if collapsed:
            found.append(
                f"{COLLAPSED} {len(collapsed)} cells have such trials, up to {100 * max(collapsed):.0f} % of a cell's."
            )
        if self.missing:
            found.append(f"{self.missing} of the paper's {n + self.missing} numbers have no finished trial here.")
        return found


def compare(index: Index, request: Request, tables: Iterable[str] = ()) -> Comparison:
    """All numbers of the paper's tables for which there are trials; accuracy only, because the paper prints nothing
    else.
    """
    if request.metric != "accuracy":
        raise NothingToCompare(f"the paper has no {request.metric}; compare accuracy (leave out --metric)")
    settings = request.settings[0]
    index = index.using(draws_used(request, papers=True))
    wanted = set(tables)
    chosen_numbers = [number for number in numbers() if not wanted or number.table in wanted]
    chosen = index.choose(dict.fromkeys(n.coordinate for n in chosen_numbers), settings, request.pick)
    mixed = index.check_agreement(chosen.values(), request.pick)
    lines = []
    for number in chosen_numbers:
        key = chosen[number.coordinate]
        values = index.results.values(key)
        if len(values):
            touching = tuple(c for c in contradictions() if c.touches(number.coordinate))
            planned, collapsed = index.results.planned_trials(key), index.results.collapsed(key)
            folds, error = error_over_folds(values)
            lines.append(Compared(number, summary(values), planned, touching, folds, error, collapsed))
    if not lines:
        raise NothingToCompare(
            f"no cell of the paper's tables has a finished trial with {settings} settings; "
            "run one of its grids, such as: bench run --grid 10labelrate"
        )
    cells = [index.cells[key] for key in chosen.values() if key is not None]
    if "preset" not in request.pick.where:
        _refuse_other_trainings(cells)
    conditions = [f"features: {', '.join(sorted({str(c['features']) for c in cells}))}"]
    conditions.append(f"splits: {', '.join(sorted({str(c['splits']) for c in cells}))}")
    conditions.append(f"training: {', '.join(sorted({preset_of(c) for c in cells}))}")
    conditions += sorted({f"tuned: {c['tuned_on']}" for c in cells if c["tuned"]})
    return Comparison(tuple(lines), len(chosen_numbers) - len(lines), settings, (*conditions, *mixed))


def _refuse_other_trainings(cells: Iterable[Mapping[str, Any]]) -> None:
    """A changed training is not the paper's, whatever preset it is based on."""
    names = {preset_of(c) for c in cells}
    other = sorted(names - set(COMPARABLE))
    if other:
        raise NothingToCompare(
            f"the training {other[0]} is not the paper's; compare with --preset {COMPARABLE[0]} or --preset "
            f"{COMPARABLE[1]}, or ask for this one with --preset {other[0]}"
        )


def contradiction_words(found: Contradiction) -> str:
    """One contradiction as a sentence with its location."""
    place = found.coordinate
    tables = " and ".join(dict.fromkeys((found.table, found.other_table)))
    where = (
        f"{LONG_NAMES[place.dataset]}, k = {place.k}, {place.augmenter} on {place.backbone}, {place.readout} readout"
    )
    return f"{where} (table {tables}): {found.statement}."


def markdown(comparison: Comparison) -> str:
    """The comparison as a Markdown page."""
    parts = ["# Ours and the paper's", "", *(f"- {markdown_escape(line)}" for line in comparison.sums())]
    parts += [f"- {markdown_escape('; '.join(comparison.conditions))}", ""]
    parts += [pipe_table(HEADS, [line.words() for line in comparison.lines]), ""]
    if comparison.touched:
        parts += ["## The paper's own contradictions among these cells (!)", ""]
        parts += [f"- {markdown_escape(contradiction_words(found))}" for found in comparison.touched]
    return "\n".join(parts) + "\n"


def side_by_side(comparison: Comparison, table: str) -> str:
    """One table of the paper in Markdown, with ours and, in italics, the paper's number in each cell."""
    spec = TABLES[table]
    lines = {line.theirs.coordinate: line for line in comparison.lines if line.theirs.table == table}
    heads = [f"{column.span} {column.head}".strip() for column in spec.columns]
    rows = []
    for row in spec.rows:
        found = [lines.get(row.at(column)) for column in spec.columns]
        name = next((line.row for line in found if line), row.name)
        rows.append([name, *("--" if line is None else f"{line.our_words} *{line.their_words}*" for line in found)])
    return pipe_table([spec.corner, *heads], rows, raw_from=1) + "\n"


def latex(comparison: Comparison) -> str:
    """The comparison as a longtable with the summary above and the contradictions below."""
    template = environment().get_template("compare.tex.j2")
    tables: dict[str, list[list[str]]] = {}
    for line in comparison.lines:
        tables.setdefault(line.theirs.table, []).append(line.words()[1:])
    contradicted = [contradiction_words(found) for found in comparison.touched]
    return template.render(comparison=comparison, heads=HEADS[1:], tables=tables, contradictions=contradicted)
