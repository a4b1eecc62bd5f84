"""A specification filled with numbers: what every output format (LaTeX, CSV, Markdown, HTML) prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.registry import UserError, unknown
from bench.results.frame import BY_FOLD
from bench.results.records import SCORES as METRICS
from tables.own_specs import (
    OWN_TABLES,
)
from tables.selection import METRIC_FACETS, SETTINGS, Index, Pick, preset_of
from tables.specs import FIGURE, TABLES, Column, Coordinate, Row, TableSpec
from tables.statistics import ALPHA, Paired, Summary, holm, summary

MARKS = ("best", "ties", "significance")


@dataclass(frozen=True)
class Entry:
    """One number of a table with everything known about it; fractions, seconds."""

    coordinate: Coordinate
    settings: str
    key: str | None
    value: Summary
    planned: int
    difference: Paired | None = None  # to plain training on the same trials
    p_holm: float = math.nan  # among the methods of its column
    p_table: float = math.nan  # among all differences of the table
    collapsed: float = math.nan  # share of trials that put all test graphs into one class
    ranked: float = 0.0  # share of trials in which GDM Acc split by rank, as GDM Unc does
    seconds_augment: float = math.nan
    seconds_train: float = math.nan
    best: bool = False
    tied: bool = False
    is_reference: bool = False  # whether the others are compared with it

    @property
    def incomplete(self) -> bool:
        return self.value.n < self.planned

    @property
    def sign(self) -> str:
        """`+` or `-` if the difference to plain training is significant after Holm's correction."""
        if self.difference is None or math.isnan(self.p_holm) or self.p_holm >= ALPHA:
            return ""
        return "+" if self.difference.mean > 0 else "-"


@dataclass(frozen=True)
class Line:
    """A row of the table with its numbers."""

    row: Row
    name: str
    settings: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Context:
    """The conditions under which the numbers of a table were measured, for its caption."""

    splits: tuple[str, ...]
    features: tuple[str, ...]
    training: tuple[str, ...]
    planned: tuple[int, ...]
    mixed: tuple[str, ...] = ()
    validation: bool = False  # whether labels of the validation part were used to choose an epoch
    tuning: tuple[str, ...] = ()  # what the settings of tuned rows were chosen on, in words
    unpaired: bool = False  # whether compared rows start from different weights in some trials
    absent: tuple[str, ...] = ()  # datasets without any number in the table
    left_out: int = 0  # recorded label draws per fold beyond those that the table uses


@dataclass(frozen=True)
class Grid:
    """A filled table."""

    spec: TableSpec
    groups: tuple[tuple[Line, ...], ...]
    metric: str
    mark: str
    context: Context
    suffix: str = ""

    @property
    def name(self) -> str:
        return f"{self.spec.name}{self.suffix}"

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for group in self.groups for line in group)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for line in self.lines for entry in line.entries)


@dataclass(frozen=True)
class Request:
    """How tables are to be filled."""

    metric: str = "accuracy"  # empty: the cells' primary metric, which must be the same for a whole table
    settings: tuple[str, ...] = ("default",)
    mark: str = "best"
    pick: Pick = field(default_factory=Pick)
    strict: bool = False
    suffix: str = ""
    repeats: int | None = None  # label draws to use; None: the first three in the paper's tables, else all; 0: all

    def __post_init__(self) -> None:
        if self.mark not in MARKS:
            raise unknown("mark", self.mark, MARKS)
        for value in self.settings:
            if value not in SETTINGS:
                raise unknown("settings", value, SETTINGS)


PAPERS_DRAWS = 3


def draws_used(request: Request, papers: bool) -> int:
    """How many label draws per fold are used, 0 for all; by default, the paper's tables use three."""
    return (PAPERS_DRAWS if papers else 0) if request.repeats is None else request.repeats


def _is_papers(spec: TableSpec) -> bool:
    return spec.name in TABLES or spec.name in OWN_TABLES or spec.name.partition("-")[0] == FIGURE.name


def reference_of(place: Coordinate, row: Row | None = None) -> Coordinate:
    """Plain training of the same model: with another readout or backbone, a difference would not be due to the method.

    A table that compares models has one row that all others are compared with.
    """
    if row is not None:
        return row.at(Column(place.dataset, place.k, ""))
    return replace(place, augmenter="none")


def fill(index: Index, spec: TableSpec, request: Request) -> Grid:
    """Look up every number of a table, compare it with plain training, and mark it."""
    index = index.using(draws_used(request, _is_papers(spec)))
    wanted = dict.fromkeys(spec.needed())
    wanted |= dict.fromkeys(reference_of(place, spec.reference) for place in spec.needed())
    chosen = {name: index.choose(wanted, name, request.pick) for name in request.settings}
    keys = [key for found in chosen.values() for key in found.values()]
    free = replace(
        request.pick, mix=request.pick.mix | spec.varies | (METRIC_FACETS if request.metric else frozenset())
    )
    hidden = spec.varies | METRIC_FACETS
    mixed = [words for words in index.check_agreement(keys, free) if words.partition(":")[0] not in hidden]
    request = replace(request, metric=_metric(index, keys, request.metric))
    # a table without tuned cells is not doubled with dashes
    kinds = tuple(kind for kind in request.settings if any(chosen[kind].values())) or request.settings[:1]
    groups = []
    for group in _run_groups(spec, chosen):
        lines = []
        for row in group:
            for settings in kinds:
                places = [(spec.at(row, c), reference_of(spec.at(row, c), spec.reference)) for c in spec.columns]
                held = tuple(_entry(index, pair, settings, chosen[settings], request) for pair in places)
                words = [settings] if settings == "tuned" and len(kinds) > 1 else []
                words += ["pooled"] if _any_pooled(index, held) else []
                lines.append(Line(row, f"{row.name} ({', '.join(words)})" if words else row.name, settings, held))
        groups.append(tuple(lines))
    if request.strict:
        _refuse_gaps(spec, groups)
    groups = _with_holm(groups, kinds)
    marked = tuple(_with_marks(group, index, request) for group in groups)
    shown = [chosen[entry.settings][entry.coordinate] for group in marked for line in group for entry in line.entries]
    context = replace(
        context_of(index, shown, mixed),
        unpaired=_unpaired(index, marked, chosen),
        absent=_absent(spec, marked),
        left_out=index.left_out(shown),
    )
    return Grid(spec, marked, request.metric, request.mark, context, request.suffix)


def _absent(spec: TableSpec, groups: Iterable[tuple[Line, ...]]) -> tuple[str, ...]:
    """The datasets of which no cell has a trial."""
    there = {e.coordinate.dataset for group in groups for line in group for e in line.entries if e.value.n}
    return tuple(name for name in dict.fromkeys(place.dataset for place in spec.coordinates()) if name not in there)


def _metric(index: Index, keys: Iterable[str | None], asked: str) -> str:
    """The one score that a table shows."""
    index.check_metric(asked)
    found = sorted({index.results.metric_of(key) for key in keys if key is not None})
    if not asked and len(found) > 1:
        raise UserError(f"the table mixes primary metrics ({', '.join(found)}); choose one with --metric")
    return asked or (found[0] if found else METRICS[0])


def _any_pooled(index: Index, entries: Iterable[Entry]) -> bool:
    return any(index.cells[entry.key]["tuned_how"] == "pooled" for entry in entries if entry.key is not None)


def _unpaired(
    index: Index,
    groups: Iterable[tuple[Line, ...]],
    chosen: dict[str, dict[Coordinate, str | None]],
) -> bool:
    """Whether a tuned cell has other initial weights than its default or than the tuned plain training."""
    for entry in (entry for group in groups for line in group for entry in line.entries):
        if entry.settings == "tuned" and entry.key is not None:
            beside = [found.get(entry.coordinate) for found in chosen.values()]
            beside.append(chosen["tuned"].get(reference_of(entry.coordinate)))
            names = {str(index.cells[key]["weights"]) for key in beside if key is not None}
            if len(names) > 1 or (BY_FOLD in names and len({*beside} - {None}) > 1):
                return True
    return False


def _run_groups(spec: TableSpec, chosen: dict[str, dict[Coordinate, str | None]]) -> Iterable[tuple[Row, ...]]:
    """The rows to print: those of the specification, and those of `beside` that were run."""
    cells = [place for found in chosen.values() for place, key in found.items() if key is not None]
    beside = tuple(row for row in spec.beside if any(spec.at(row, column) in cells for column in spec.columns))
    return ((beside,) if beside else ()) + spec.groups


def _entry(
    index: Index,
    places: tuple[Coordinate, Coordinate],
    settings: str,
    chosen: dict[Coordinate, str | None],
    request: Request,
) -> Entry:
    place, reference = places  # where the number is, and what it is compared with
    results, key = index.results, chosen[place]
    done, values = results.done(key), results.values(key, request.metric)
    difference, against = None, chosen[reference]
    if key is not None and len(values) and reference != place and against is not None:
        difference = index.paired(key, against, request.metric)
    return Entry(
        place,
        settings,
        key,
        summary(values),
        results.planned_trials(key),
        difference,
        is_reference=reference == place,
        collapsed=results.collapsed(key),
        ranked=results.ranked(key),
        seconds_augment=float(done["seconds.augment"].astype(float).mean()) if len(done) else math.nan,
        seconds_train=float(done["seconds.train"].astype(float).mean()) if len(done) else math.nan,
    )


def _refuse_gaps(spec: TableSpec, groups: Iterable[tuple[Line, ...]]) -> None:
    gaps = [e for group in groups for line in group for e in line.entries if e.key is None or e.incomplete]
    if gaps:
        first = gaps[0]
        state = "was never run" if first.key is None else f"has {first.value.n} of {first.planned} trials"
        raise UserError(
            f"table {spec.name} has {len(gaps)} cells without all their trials (first: {first.coordinate} {state}); "
            "run them, or leave out --strict"
        )


def _with_holm(groups: Sequence[tuple[Line, ...]], settings: Sequence[str]) -> list[tuple[Line, ...]]:
    """Correct for the methods compared in one column under the same settings, and for the whole table."""
    lines = [line for group in groups for line in group]
    by_column: dict[tuple[int, int], float] = {}
    by_table: dict[tuple[int, int], float] = {}
    for kind in settings:
        places = [
            (row, column)
            for row, line in enumerate(lines)
            if line.settings == kind
            for column in range(len(line.entries))
        ]
        by_table |= _adjusted(lines, places)
        for column in range(len(lines[0].entries)):
            by_column |= _adjusted(lines, [place for place in places if place[1] == column])
    place = iter(range(len(lines)))
    return [tuple(_line_with_p(line, next(place), by_column, by_table) for line in group) for group in groups]


def _adjusted(lines: Sequence[Line], places: Sequence[tuple[int, int]]) -> dict[tuple[int, int], float]:
    differences = [lines[row].entries[column].difference for row, column in places]
    return dict(zip(places, holm([d.p if d else math.nan for d in differences]), strict=True))


def _line_with_p(
    line: Line, row: int, by_column: dict[tuple[int, int], float], by_table: dict[tuple[int, int], float]
) -> Line:
    entries = tuple(
        replace(entry, p_holm=by_column[row, column], p_table=by_table[row, column])
        for column, entry in enumerate(line.entries)
    )
    return replace(line, entries=entries)


def shown_percent(fraction: float) -> str:
    """A fraction as the tables print it."""
    return f"{100 * fraction:.1f}"


def _with_marks(group: tuple[Line, ...], index: Index, request: Request) -> tuple[Line, ...]:
    """Find the best number of each column in a group of rows; a group with one row has none."""
    entries = [list(line.entries) for line in group]
    for column in range(len(entries[0]) if len(group) > 1 else 0):
        there = [row for row in range(len(group)) if entries[row][column].value.n]
        if len(there) < 2:
            continue
        top = max(there, key=lambda row: entries[row][column].value.mean)
        highest = shown_percent(entries[top][column].value.mean)
        best = [row for row in there if shown_percent(entries[row][column].value.mean) == highest]
        others = [row for row in there if row not in best]
        keys = [str(entries[row][column].key) for row in others]
        against = [index.paired(str(entries[top][column].key), key, request.metric).p for key in keys]
        tied = {row for row, p in zip(others, holm(against), strict=True) if math.isnan(p) or p >= ALPHA}
        for row in there:
            entries[row][column] = replace(entries[row][column], best=row in best, tied=row in tied)
    return tuple(replace(line, entries=tuple(found)) for line, found in zip(group, entries, strict=True))


_HEADS = {"relu": "a ReLU on the logits", "linear": "linear logits"}


def _letter(cell: Mapping[str, Any]) -> str:
    """What a caption says about a training in addition to its name."""
    epochs = f"{int(cell['training.epochs'])} epochs"
    return f"{epochs}, {_HEADS[str(cell['training.head'])]}" if cell["backbone"] else epochs


def context_of(index: Index, keys: Iterable[str | None], mixed: Sequence[str] = ()) -> Context:
    """The conditions of some cells."""
    held = [key for key in dict.fromkeys(keys) if key is not None]
    cells = [index.cells[key] for key in held]
    training = dict.fromkeys(
        f"tuned from {preset_of(c)}" if c["tuned"] else f"{preset_of(c)} ({_letter(c)})" for c in cells
    )
    return Context(
        tuple(sorted({str(c["splits"]) for c in cells})),
        tuple(sorted({str(c["features"]) for c in cells}, key=lambda name: (name != "native", name))),
        tuple(training),
        tuple(sorted({index.results.planned_trials(key) for key in held})),
        tuple(mixed),
        any(c["training.select"] == "best-val" for c in cells),
        tuple(sorted({str(c["tuned_on"]) for c in cells if c["tuned"]})),
    )
