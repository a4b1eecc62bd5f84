"""A specification filled with numbers: what every output format (LaTeX, CSV, Markdown, HTML) prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from bench.registry import UserError, unknown
from bench.results.frame import BY_FOLD
from bench.results.records import SCORES as METRICS
from tables.own_specs import OWN_TABLES, needed, specified
from tables.selection import SETTINGS, Index, Pick, preset_of
from tables.specs import FIGURE, MEASURE, TABLES, Column, Coordinate, Row, TableSpec, full, generic
from tables.statistics import ALPHA, Paired, Summary, holm, summary

MARKS = ("best", "ties", "significance")
CUSTOM = "custom"


@dataclass(frozen=True)
class Entry:
    """One number of a table with all that may be said about it; fractions, seconds."""

    coordinate: Coordinate
    settings: str
    key: str | None
    value: Summary
    planned: int
    difference: Paired | None = None  # to plain training on the same trials
    p_holm: float = math.nan
    seconds_augment: float = math.nan
    seconds_train: float = math.nan
    best: bool = False
    tied: bool = False
    is_reference: bool = False  # what the others are compared with

    @property
    def incomplete(self) -> bool:
        return self.value.n < self.planned

    @property
    def sign(self) -> str:
        """`+` or `-` when the difference to plain training is significant after Holm's correction."""
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
    """Under which conditions the numbers of one table were measured, for its caption."""

    splits: tuple[str, ...]
    features: tuple[str, ...]
    training: tuple[str, ...]
    planned: tuple[int, ...]
    mixed: tuple[str, ...] = ()
    validation: bool = False  # whether labels of the validation part chose an epoch
    tuning: tuple[str, ...] = ()  # what the settings of tuned rows were chosen on, in words
    unpaired: bool = False  # rows that are compared start from other weights in some trials


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

    metric: str = "accuracy"
    settings: tuple[str, ...] = ("default",)
    mark: str = "best"
    pick: Pick = field(default_factory=Pick)
    strict: bool = False
    suffix: str = ""

    def __post_init__(self) -> None:
        for kind, value, known in (("metric", self.metric, METRICS), ("mark", self.mark, MARKS)):
            if value not in known:
                raise unknown(kind, value, known)
        for value in self.settings:
            if value not in SETTINGS:
                raise unknown("settings", value, SETTINGS)


def specs_for(index: Index, names: Sequence[str], settings: Sequence[str]) -> list[TableSpec]:
    """The tables asked for; without names every one that has a cell of its own, and `custom` for the rest."""
    there = set(index.coordinates(settings))
    beyond = there - specified()
    if not names:
        paper = set(full())
        names = [name for name in (*TABLES, FIGURE.name) if there & paper & set(needed(name))]
        names += [name for name in OWN_TABLES if (there - paper) & set(needed(name))]
        names += [CUSTOM] if beyond else []
        if not names:
            raise UserError(f"there are no {' or '.join(settings)} cells yet; start with: bench run")
    found: list[TableSpec] = []
    for name in dict.fromkeys(names):
        if name == CUSTOM:
            found += _custom(there, beyond)
        elif name == FIGURE.name:
            shown = there & set(FIGURE.coordinates())
            found += generic(name, shown or FIGURE.coordinates(), FIGURE.caption)
        elif name in TABLES or name in OWN_TABLES:
            found.append(TABLES.get(name) or OWN_TABLES[name])
        else:
            raise unknown("table", name, (*TABLES, FIGURE.name, *OWN_TABLES, CUSTOM))
    return found


def _custom(there: set[Coordinate], beyond: set[Coordinate]) -> Iterable[TableSpec]:
    """Cells that no specification of the paper names, with plain training beside them."""
    if not beyond:
        raise UserError("every cell is in one of the other tables; leave out the name 'custom'")
    plain = {reference_of(place) for place in beyond}
    caption = f"{MEASURE} by method, dataset and number of labeled graphs per class (k)."
    return generic(CUSTOM, beyond | (plain & there), caption)


def reference_of(place: Coordinate, row: Row | None = None) -> Coordinate:
    """Plain training of the same model: with another readout or backbone, a difference would not be the method's.

    A table that compares models has a row to which all are compared.
    """
    if row is not None:
        return row.at(Column(place.dataset, place.k, ""))
    return replace(place, augmenter="none")


def fill(index: Index, spec: TableSpec, request: Request) -> Grid:
    """Look up every number of a table, compare it with plain training, and mark it."""
    wanted = dict.fromkeys(spec.needed())
    wanted |= dict.fromkeys(reference_of(place, spec.reference) for place in spec.needed())
    chosen = {name: index.choose(wanted, name, request.pick) for name in request.settings}
    keys = [key for found in chosen.values() for key in found.values()]
    mixed = index.check_agreement(keys, request.pick)
    # a table without a single tuned cell is not doubled with dashes
    kinds = tuple(kind for kind in request.settings if any(chosen[kind].values())) or request.settings[:1]
    groups = []
    for group in _run_groups(spec, chosen):
        lines = []
        for row in group:
            for settings in kinds:
                places = [(row.at(c), reference_of(row.at(c), spec.reference)) for c in spec.columns]
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
    context = replace(_context(index, shown, mixed), unpaired=_unpaired(index, marked, chosen))
    return Grid(spec, marked, request.metric, request.mark, context, request.suffix)


def _any_pooled(index: Index, entries: Iterable[Entry]) -> bool:
    return any(index.cells[entry.key]["tuned_how"] == "pooled" for entry in entries if entry.key is not None)


def _unpaired(
    index: Index,
    groups: Iterable[tuple[Line, ...]],
    chosen: dict[str, dict[Coordinate, str | None]],
) -> bool:
    """Whether a tuned cell has other first weights than its default or than the tuned plain training beside it."""
    for entry in (entry for group in groups for line in group for entry in line.entries):
        if entry.settings == "tuned" and entry.key is not None:
            beside = [found.get(entry.coordinate) for found in chosen.values()]
            beside.append(chosen["tuned"].get(reference_of(entry.coordinate)))
            names = {str(index.cells[key]["weights"]) for key in beside if key is not None}
            if len(names) > 1 or (BY_FOLD in names and len({*beside} - {None}) > 1):
                return True
    return False


def _run_groups(spec: TableSpec, chosen: dict[str, dict[Coordinate, str | None]]) -> Iterable[tuple[Row, ...]]:
    """The rows to print: the specification's own, and of those beside them the ones that were run."""
    cells = [place for found in chosen.values() for place, key in found.items() if key is not None]
    beside = tuple(row for row in spec.beside if any(row.at(column) in cells for column in spec.columns))
    return ((beside,) if beside else ()) + spec.groups


def _entry(
    index: Index,
    places: tuple[Coordinate, Coordinate],
    settings: str,
    chosen: dict[Coordinate, str | None],
    request: Request,
) -> Entry:
    place, reference = places  # where the number stands, and what it is compared with
    results, key = index.results, chosen[place]
    done = results.done(key)
    values = results.values(key, request.metric)
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
    """Correct for the number of methods compared in one column under the same settings."""
    lines = [line for group in groups for line in group]
    columns = range(len(lines[0].entries))
    adjusted: dict[tuple[int, int], float] = {}
    for column in columns:
        for kind in settings:
            rows = [place for place, line in enumerate(lines) if line.settings == kind]
            differences = [lines[row].entries[column].difference for row in rows]
            corrected = holm([d.p_wilcoxon if d else math.nan for d in differences])
            adjusted |= {(row, column): p for row, p in zip(rows, corrected, strict=True)}
    place = iter(range(len(lines)))
    return [tuple(_line_with_p(line, next(place), adjusted) for line in group) for group in groups]


def _line_with_p(line: Line, row: int, adjusted: dict[tuple[int, int], float]) -> Line:
    entries = tuple(replace(entry, p_holm=adjusted[row, column]) for column, entry in enumerate(line.entries))
    return replace(line, entries=entries)


def shown_percent(fraction: float) -> str:
    """A fraction as the tables print it."""
    return f"{100 * fraction:.1f}"


def _with_marks(group: tuple[Line, ...], index: Index, request: Request) -> tuple[Line, ...]:
    """Find the best of each column in one group of rows; a group of one has no best."""
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
        against = [index.paired(str(entries[top][column].key), key, request.metric).p_wilcoxon for key in keys]
        tied = {row for row, p in zip(others, holm(against), strict=True) if math.isnan(p) or p >= ALPHA}
        for row in there:
            entries[row][column] = replace(entries[row][column], best=row in best, tied=row in tied)
    return tuple(replace(line, entries=tuple(found)) for line, found in zip(group, entries, strict=True))


def _context(index: Index, keys: Iterable[str | None], mixed: Sequence[str]) -> Context:
    held = [key for key in dict.fromkeys(keys) if key is not None]
    cells = [index.cells[key] for key in held]
    training = dict.fromkeys(
        f"tuned from {preset_of(c)}" if c["tuned"] else f"{preset_of(c)} ({int(c['training.epochs'])} epochs)"
        for c in cells
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
