"""Custom tables: which properties form the rows and columns, and how they are labeled.

The cells come from a ledger or from a grid file; the same layout arranges both. Standard library only, because the
command line uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.registry import UserError, unknown
from tables.specs import (
    FIGURE,
    LONG_NAMES,
    MEASURE,
    METHODS,
    PLACE,
    Column,
    Coordinate,
    Row,
    TableSpec,
    method_name,
    words_of,
)

PLUGINS = ("augmenter", "backbone", "readout", "learner")
BESIDE = ("features", "splits")  # properties of a cell that are neither plug-ins nor settings


@dataclass(frozen=True)
class Layout:
    """Properties in rows and columns: `dataset`, `k`, `augmenter`, `augmenter.eps`, `training.lr`, ..."""

    rows: tuple[str, ...] = ("augmenter",)
    columns: tuple[str, ...] = ("dataset", "k")
    name: str = "own"
    caption: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, given in (("rows", self.rows), ("columns", self.columns)):
            if not given:
                raise UserError(f"{what} of a table need a property, such as dataset or augmenter.eps")
        twice = [name for name in self.axes if self.axes.count(name) > 1]
        if twice:
            raise UserError(f"{twice[0]} is named twice in the rows and columns of a table; keep one")

    @property
    def axes(self) -> tuple[str, ...]:
        return (*self.rows, *self.columns)


@dataclass(frozen=True)
class Described:
    """A cell with its properties in words; `names` are the plug-ins without their settings."""

    place: Coordinate
    names: Mapping[str, str]
    properties: Mapping[str, str]  # augmenter.eps, training.lr, features, ...

    def value(self, name: str, axes: Sequence[str]) -> str | None:
        """The value of a property in words. A plug-in is shown without settings if one of them has its own axis."""
        if name not in PLACE:
            return self.properties.get(name)
        if any(axis.startswith(f"{name}.") for axis in axes):
            return self.names.get(name, "")
        return str(getattr(self.place, name))

    def is_one(self, name: str, wanted: str) -> bool:
        """Whether a property has this value; plug-ins may be given with or without settings."""
        held = {self.value(name, ()), self.names.get(name) if name in PLUGINS else None}
        return wanted in held or any(_number(one) is not None and _number(one) == _number(wanted) for one in held)


def known_properties(cells: Iterable[Described]) -> set[str]:
    """All properties by which these cells can be arranged."""
    return {*PLACE, *(name for cell in cells for name in cell.properties)}


def having(cells: Sequence[Described], where: Mapping[str, str]) -> list[Described]:
    """The cells whose properties have these values; several values are separated by commas."""
    known = known_properties(cells)
    for name, wanted in where.items():
        if name not in known:
            raise unknown("property of cells", name, known)
        kept = [cell for cell in cells if any(cell.is_one(name, one) for one in _split(wanted))]
        if not kept:
            there = sorted({value for cell in cells if (value := cell.value(name, ())) is not None})
            raise UserError(f"no cell has {name}={wanted}; there are: {', '.join(there[:20])}")
        cells = kept
    return list(cells)


def arranged(layout: Layout, cells: Sequence[Described], as_given: bool = False) -> TableSpec:
    """The table of a layout. Each place must contain one cell; other differences between cells have to be resolved."""
    known = known_properties(cells)
    for name in layout.axes:
        if name not in known:
            raise unknown("property of cells", name, known)
    at: dict[tuple[tuple[str, ...], tuple[str, ...]], Described] = {}
    for cell in cells:
        down, over = ([cell.value(name, layout.axes) for name in axes] for axes in (layout.rows, layout.columns))
        if None in down or None in over or "" in down or "" in over:
            continue  # plain training has no eps, so it has no place in a table by eps
        where = (tuple(map(str, down)), tuple(map(str, over)))
        if where in at and at[where].place != cell.place:
            raise _two_in_one(layout, at[where], cell)
        at[where] = cell
    if not at:
        raise UserError(f"no cell has all of {', '.join(layout.axes)}; choose other rows and columns")
    placed_at = {where: _placed(cell, layout) for where, cell in at.items()}
    rows = {
        values: Row(_words(layout, layout.rows, values, len(values) == 1), "")
        for values in _ordered([r for r, _ in at], as_given)
    }
    columns = {values: _column(layout, values) for values in _ordered([c for _, c in at], as_given)}
    _refuse_twins([row.name for row in rows.values()], "rows")
    _refuse_twins([f"{column.span} {column.head}" for column in columns.values()], "columns")
    placed = {
        (rows[down], columns[over]): placed_at.get((down, over)) or _empty(layout, placed_at, down, over)
        for down in rows
        for over in columns
    }
    return TableSpec(
        layout.name,
        layout.caption or _caption(layout),
        (tuple(rows.values()),),
        tuple(columns.values()),
        corner=_corner(layout),
        resize=False,
        placed=placed,
        varies=_varies(layout.axes),
    )


def _placed(cell: Described, layout: Layout) -> Coordinate:
    """Where to look for the cell: properties that a coordinate lacks and the table varies are added to the query."""
    asked = [name for name in layout.axes if name.startswith("training.") or name in BESIDE]
    where = {**dict(cell.place.where), **{name.removeprefix("training."): cell.properties[name] for name in asked}}
    return replace(cell.place, where=tuple(sorted(where.items())))


def _empty(
    layout: Layout,
    placed: Mapping[tuple[tuple[str, ...], tuple[str, ...]], Coordinate],
    down: tuple[str, ...],
    over: tuple[str, ...],
) -> Coordinate:
    """A coordinate for an empty place: that of a neighbor in its row, moved to the column."""
    neighbor = next(place for (row, _), place in placed.items() if row == down)
    moved: dict[str, Any] = {}
    for name, value in zip(layout.columns, over, strict=True):
        if name in PLACE:
            moved[name] = int(value) if name == "k" else value
        elif "." in name and name.partition(".")[0] in PLUGINS:
            part, _, setting = name.partition(".")
            bare = str(moved.get(part, getattr(neighbor, part))).partition(":")[0]
            moved[part] = f"{bare}:{setting}={value}"
    where = dict(neighbor.where) | {
        name.removeprefix("training."): value
        for name, value in zip(layout.columns, over, strict=True)
        if name.startswith("training.") or name in BESIDE
    }
    return replace(neighbor, **moved, where=(*sorted(where.items()), ("cell", "absent")))


def _two_in_one(layout: Layout, one: Described, other: Described) -> UserError:
    names = [*PLACE, *sorted({*one.properties, *other.properties})]
    bare = [name for name in PLUGINS if one.names.get(name) != other.names.get(name)]
    settings = [name for name in names if "." in name and one.properties.get(name) != other.properties.get(name)]
    rest = [name for name in names if one.value(name, ()) != other.value(name, ())]
    name = next(found for found in (*bare, *settings, *rest) if found not in layout.axes or found in bare)
    values = sorted(str(cell.names[name] if name in bare else cell.value(name, ())) for cell in (one, other))
    return UserError(
        f"two cells share one place of the table ({one.place}; {other.place}): they differ in {name} "
        f"({', '.join(values)}); add {name} to the rows or columns, or choose with --where {name}={values[0]}"
    )


def _ordered(values: Iterable[tuple[str, ...]], as_given: bool) -> list[tuple[str, ...]]:
    found = list(dict.fromkeys(values))
    if as_given and not any(_number(one) is not None for several in found for one in several):
        return found
    places = {value: place for place, value in enumerate(dict.fromkeys(one for several in found for one in several))}
    datasets = {dataset: place for place, (dataset, _) in enumerate(FIGURE.panels)}
    methods = {row.augmenter: place for place, row in enumerate(METHODS)}

    def rank(value: str) -> tuple[int, float, str]:
        number = _number(value)
        if number is not None:
            return 0, number, ""
        if as_given:
            return 1, places[value], ""
        return 1, datasets.get(value, methods.get(value.partition(":")[0], len(found) + 100)), value

    return sorted(found, key=lambda several: [rank(one) for one in several])


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _words(layout: Layout, names: Sequence[str], values: Sequence[str], bare: bool) -> str:
    """The label of a row or span: values with the names of their settings; for a single property, the corner has the
    name.
    """
    found = []
    for name, value in zip(names, values, strict=True):
        text = shown_value(name, value, layout.labels)
        short = property_words(name, layout.labels)
        found.append(text if bare or name in (*PLUGINS, "dataset") else f"{short}={text}")
    return ", ".join(found)


def _column(layout: Layout, values: Sequence[str]) -> Column:
    """The last property labels the column, the ones before it label spans."""
    *above, last = values
    facts = dict(zip(layout.columns, values, strict=True))
    k = int(facts["k"]) if "k" in facts else 0
    name = layout.columns[-1]
    head = shown_value(name, last, layout.labels)
    if name not in (*PLUGINS, "dataset"):
        head = f"{property_words(name, layout.labels)}={head}"
    span = _words(layout, layout.columns[:-1], above, bare=False) if above else ""
    return Column(facts.get("dataset", ""), k, head, span)


def shown_value(name: str, value: str, labels: Mapping[str, str]) -> str:
    """A property's value as displayed."""
    if value in labels:
        return labels[value]
    if name == "dataset":
        return LONG_NAMES.get(value, value)
    return words_of(value, name, labels) if name in PLUGINS else value


def property_words(name: str, labels: Mapping[str, str]) -> str:
    """A property as displayed: `augmenter.eps` is eps."""
    return labels.get(name, name.partition(".")[2] or name)


def _corner(layout: Layout) -> str:
    return " / ".join(property_words(name, layout.labels) for name in layout.rows)


def _caption(layout: Layout) -> str:
    down, over = (
        " and ".join(property_words(name, layout.labels) for name in axes) for axes in (layout.rows, layout.columns)
    )
    return f"{MEASURE} by {down} (rows) and {over} (columns)."


def _varies(axes: Sequence[str]) -> frozenset[str]:
    """The properties, by the names of `facets`, in which the cells of such a table differ by design."""
    trained = [name.removeprefix("training.") for name in axes if name.startswith("training.")]
    named = [name for name in axes if name in BESIDE]
    # a training setting is part of the training's name, and may require the other engine
    return frozenset([*trained, *named, *(("preset", "engine") if trained else ())])


def _refuse_twins(names: Sequence[str], what: str) -> None:
    twin = next((name for name in names if names.count(name) > 1), None)
    if twin is not None:
        raise UserError(f"two {what} of the table are both called '{twin}'; give them different labels")


def _split(text: str) -> list[str]:
    """Comma-separated values; a comma before another setting of a plug-in belongs to the plug-in."""
    found: list[str] = []
    for piece in text.split(","):
        if found and "=" in piece.partition(":")[0]:
            found[-1] += f",{piece}"
        else:
            found.append(piece.strip())
    return found


def relabeled(spec: TableSpec, labels: Mapping[str, str]) -> TableSpec:
    """A table of the paper with the user's labels for its methods, models and datasets."""
    if not labels:
        return spec

    def name(row: Row) -> str:
        if row.name in labels:
            return labels[row.name]
        parts = (row.augmenter, row.backbone, row.readout, row.learner)
        if row.name == method_name(*parts):
            return method_name(*parts, labels)
        part = row.augmenter if row.augmenter != "none" else row.backbone or row.learner
        return labels.get(part, row.name)

    def head(text: str, column: Column) -> str:
        if text.isdecimal():  # a label rate
            return text
        names = (column.dataset, LONG_NAMES.get(column.dataset, ""), text)
        return next((labels[one] for one in names if one in labels), text)

    renamed = {row: replace(row, name=name(row)) for row in (*spec.rows, *spec.beside)}
    columns = tuple(
        replace(column, head=head(column.head, column), span=head(column.span, column) if column.span else "")
        for column in spec.columns
    )
    _refuse_twins([row.name for row in renamed.values() if row in spec.rows], "rows")
    moved = dict(zip(spec.columns, columns, strict=True))
    return replace(
        spec,
        groups=tuple(tuple(renamed[row] for row in group) for group in spec.groups),
        beside=tuple(renamed[row] for row in spec.beside),
        reference=renamed.get(spec.reference, spec.reference) if spec.reference else None,
        columns=columns,
        placed={(renamed[row], moved[column]): place for (row, column), place in spec.placed.items()},
    )
