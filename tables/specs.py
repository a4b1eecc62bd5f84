"""The paper's tables and its figure as specifications.

A specification lists the rows and columns of what is printed, so it *is* the list of cells that have to be run:
`coordinates("GAE")` is used both for running and for rendering. Standard library only, because the command line uses
it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.registry import UserError, unknown

PLACE = ("dataset", "k", "augmenter", "backbone", "readout", "learner")  # what identifies a coordinate
LABEL_RATES = (2, 3, 5, 10, 25, 50)
MEASURE = "{measure}"  # where a caption names the metric and its spread


@dataclass(frozen=True, order=True)
class Coordinate:
    """The position of a number: all properties of a cell that the paper's tables vary.

    `where` contains other properties that a custom table varies, such as training settings, by the names of `facets`.
    """

    dataset: str
    k: int
    augmenter: str
    backbone: str = "gcn"  # empty, like the readout, for a learner without a network
    readout: str = "mean"
    learner: str = "gnn"
    where: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)

    def __str__(self) -> str:
        model = f"{self.backbone} {self.readout}" if self.backbone else self.learner
        return " ".join([f"{self.dataset} k={self.k} {self.augmenter} {model}", *map("=".join, self.where)])

    def to_json(self) -> dict[str, Any]:
        """For a ledger's line; empty properties are left out."""
        facts = {name: getattr(self, name) for name in PLACE}
        return facts | ({"where": dict(self.where)} if self.where else {})


@dataclass(frozen=True)
class Row:
    """One printed row: its label and the method behind it."""

    name: str
    augmenter: str
    backbone: str = "gcn"
    readout: str = "mean"
    learner: str = "gnn"

    def at(self, column: Column) -> Coordinate:
        return Coordinate(column.dataset, column.k, self.augmenter, self.backbone, self.readout, self.learner)


@dataclass(frozen=True)
class Column:
    """One printed column; adjacent columns with the same `span` share that heading."""

    dataset: str
    k: int
    head: str
    span: str = ""


@dataclass(frozen=True)
class TableSpec:
    """A table: groups of rows (separated by rules; the best number is determined within a group) by columns.

    `beside` are rows that the paper lacks but readers need: they are run with the others and printed once run.
    Differences refer to the row `reference` or, without one, to plain training of each row's own model. Rows and
    columns of custom tables may be any property; `placed` then says which cell belongs where, and `varies` names the
    properties in which the cells differ.
    """

    name: str
    caption: str
    groups: tuple[tuple[Row, ...], ...]
    columns: tuple[Column, ...]
    corner: str = ""
    resize: bool = True
    beside: tuple[Row, ...] = ()
    reference: Row | None = None
    placed: Mapping[tuple[Row, Column], Coordinate] = field(default_factory=dict)
    varies: frozenset[str] = frozenset()

    def at(self, row: Row, column: Column) -> Coordinate:
        """The cell in a row and column."""
        return self.placed.get((row, column)) or row.at(column)

    def needed(self) -> tuple[Coordinate, ...]:
        """The cells that its grid runs, whether or not the paper has them."""
        return tuple(self.at(row, column) for row in (*self.beside, *self.rows) for column in self.columns)

    @property
    def label(self) -> str:
        return f"table:{self.name}"

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for group in self.groups for row in group)

    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(self.at(row, column) for row in self.rows for column in self.columns)

    def spans(self) -> list[tuple[str, int]]:
        """The headings above the columns, each with its number of columns."""
        found: list[tuple[str, int]] = []
        for column in self.columns:
            if found and found[-1][0] == column.span:
                found[-1] = (column.span, found[-1][1] + 1)
            else:
                found.append((column.span, 1))
        return found


@dataclass(frozen=True)
class FigureSpec:
    """A figure with one panel per dataset: one line per method over the label rates."""

    name: str
    caption: str
    panels: tuple[tuple[str, str], ...]  # dataset, title
    rates: tuple[int, ...]
    rows: tuple[Row, ...]

    @property
    def label(self) -> str:
        return f"fig:{self.name}"

    def coordinates(self) -> tuple[Coordinate, ...]:
        return tuple(
            row.at(Column(dataset, k, str(k))) for dataset, _ in self.panels for k in self.rates for row in self.rows
        )


LONG_NAMES = {
    "PROTEINS": "Proteins",
    "NCI1": "NCI1",
    "DD": "D&D",
    "IMDB-BINARY": "IMDB-Binary",
    "IMDB-MULTI": "IMDB-Multi",
    "REDDIT-MULTI-5K": "Reddit-5K",
}
SHORT_NAMES = {**LONG_NAMES, "IMDB-BINARY": "IMDB-B", "IMDB-MULTI": "IMDB-M", "REDDIT-MULTI-5K": "Reddit"}

METHODS = (
    Row("GCN", "none"),
    Row("DropNode", "dropnode"),
    Row("DropEdge", "dropedge"),
    Row("SoftEdge", "softedge"),
    Row("M-Mixup", "m-mixup"),
    Row("G-Mixup", "g-mixup"),
    Row("GDM Acc", "gdm-acc"),
    Row("GDM Unc", "gdm-unc"),
)
_METHOD_WORDS = {row.augmenter: row.name for row in METHODS} | {"gdm-rand": "GDM Rand"}
_BACKBONE_WORDS = {"gcn": "GCN", "gin": "GIN", "gat": "GAT", "sage": "GraphSAGE"}


def _by_label_rate(*datasets: str) -> tuple[Column, ...]:
    return tuple(Column(dataset, k, str(k), LONG_NAMES[dataset]) for dataset in datasets for k in (2, 3, 5, 10))


def _without(head: str, augmenter: str) -> tuple[Row, ...]:
    left_out = (("Low", "low"), ("Med", "med"), ("High", "high"))
    variants = tuple(Row(f"w/o {name} Diff", f"{augmenter}:without={value}") for name, value in left_out)
    return (Row(head, augmenter), *variants)


def _readouts(short: str, augmenter: str) -> tuple[Row, ...]:
    names = (("Mean", "mean"), ("Add", "add"), ("Max", "max"))
    return tuple(Row(f"{short} {name}", augmenter, readout=readout) for name, readout in names)


def _on_backbone(name: str, backbone: str) -> tuple[Row, ...]:
    rows = ((name, "none"), ("GDM Acc", "gdm-acc"), ("GDM Unc", "gdm-unc"))
    return tuple(Row(shown, augmenter, backbone) for shown, augmenter in rows)


TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        TableSpec(
            "10labelrate",
            f"{MEASURE} on 6 graph classification benchmark datasets with 10 labeled graphs per class.",
            (METHODS,),
            tuple(Column(dataset, 10, head) for dataset, head in SHORT_NAMES.items()),
            corner="Dataset",
            resize=False,
        ),
        TableSpec(
            "Match",
            f"Ablation study results on the impact of Balanced Graph Sampling in terms of {MEASURE} "
            "with a few labeled graphs per class (2, 3, 5, 10).",
            ((Row("GDM Rand", "gdm-rand"),), _without("GDM Acc", "gdm-acc"), _without("GDM Unc", "gdm-unc")),
            _by_label_rate("DD", "IMDB-MULTI"),
        ),
        TableSpec(
            "GAE",
            f"Ablation study results on the impact of Graph Structural Auto-encoder in terms of {MEASURE}.",
            (
                (Row("GCN", "none"),),
                (Row("GSAE Acc", "gdm-acc"), Row("VGSAE Acc", "gdm-acc:encoder=vgsae")),
                (Row("GSAE Unc", "gdm-unc"), Row("VGSAE Unc", "gdm-unc:encoder=vgsae")),
            ),
            _by_label_rate("PROTEINS", "IMDB-BINARY"),
        ),
        TableSpec(
            "GNN_Baseline",
            f"Ablation study results on the impact of GNN baselines in terms of {MEASURE}.",
            (_on_backbone("GIN", "gin"), _on_backbone("GAT", "gat")),
            _by_label_rate("IMDB-BINARY", "IMDB-MULTI"),
        ),
        TableSpec(
            "Pool",
            f"Ablation study results on the impact of graph readout function in terms of {MEASURE}.",
            (_readouts("Acc", "gdm-acc"), _readouts("Unc", "gdm-unc")),
            _by_label_rate("PROTEINS", "IMDB-BINARY"),
            beside=_readouts("GCN", "none"),
        ),
    )
}

FIGURE = FigureSpec(
    "main_exp",
    f"{MEASURE} on graph classification benchmark datasets with few labeled graphs per class.",
    tuple((dataset, LONG_NAMES[dataset]) for dataset in ("DD", "NCI1", "PROTEINS"))
    + tuple((dataset, LONG_NAMES[dataset]) for dataset in ("IMDB-BINARY", "IMDB-MULTI", "REDDIT-MULTI-5K")),
    LABEL_RATES,
    METHODS,
)

NAMES = (*TABLES, FIGURE.name)
# settings that the paper has a separate row for, so that a tuned cell keeps them when it looks up its row
DEFINING_SETTINGS = frozenset(
    part.partition("=")[0]
    for spec in TABLES.values()
    for row in spec.rows
    for part in row.augmenter.partition(":")[2].split(",")
    if part
)


def coordinates(name: str) -> tuple[Coordinate, ...]:
    """The cells of one table or the figure; `full` for all of them."""
    if name == "full":
        return full()
    if name == FIGURE.name:
        return FIGURE.coordinates()
    if name not in TABLES:
        raise unknown("table", name, (*NAMES, "full"))
    return TABLES[name].coordinates()


def full() -> tuple[Coordinate, ...]:
    """Every cell of the paper once, in the order of the tables."""
    return tuple(dict.fromkeys(c for name in NAMES for c in coordinates(name)))


def words_of(spec: str, part: str, labels: Mapping[str, str] | None = None) -> str:
    """A plug-in as displayed: `gcn:layers=2,width=32` is GCN (layers=2, width=32)."""
    named = labels or {}
    if spec in named:
        return named[spec]
    if "+" in spec:
        return " + ".join(words_of(one, part, labels) for one in spec.split("+"))
    bare, _, settings = spec.partition(":")
    if settings and "=" not in settings.partition(":")[0]:  # a class by its path: module:Class:key=value
        path, _, settings = settings.partition(":")
        bare = path
    usual = {**_METHOD_WORDS, "none": "no augmentation"} if part == "augmenter" else _BACKBONE_WORDS
    name = named.get(bare) or usual.get(bare, bare)
    return f"{name} ({settings.replace(',', ', ')})" if settings else name


def method_name(
    augmenter: str,
    backbone: str = "gcn",
    readout: str = "mean",
    learner: str = "gnn",
    labels: Mapping[str, str] | None = None,
) -> str:
    """The paper's name of a method, or its own, with the backbone and readout if they are not the usual ones."""
    if not backbone:
        shown = words_of(learner, "learner", labels)
        return shown if augmenter == "none" else _with_extras(words_of(augmenter, "augmenter", labels), [shown])
    if augmenter == "none" and readout == "mean":
        return words_of(backbone, "backbone", labels)
    short = "none" if augmenter == "none" else words_of(augmenter, "augmenter", labels)
    extras = [words_of(backbone, "backbone", labels)] if backbone != "gcn" else []
    extras += [words_of(readout, "readout", labels)] if readout != "mean" else []
    return _with_extras(short, extras)


def _with_extras(name: str, extras: list[str]) -> str:
    """Add words to a name, inside its parentheses if it has any."""
    opened = f"{name[:-1]}, " if name.endswith(")") else f"{name} ("
    return f"{opened}{', '.join(extras)})" if extras else name


def generic(
    name: str,
    cells: Iterable[Coordinate],
    caption: str,
    widest: int = 8,
    labels: Mapping[str, str] | None = None,
) -> Iterator[TableSpec]:
    """Tables for arbitrary cells: methods by dataset and label rate, split into several tables if too wide."""
    wanted = sorted(set(cells))
    if not wanted:
        raise UserError(f"there is no cell for the table '{name}'; run a grid first")
    methods: dict[tuple[str, str, str], dict[str, None]] = {}
    known = {row.augmenter: place for place, row in enumerate(METHODS)}
    for cell in sorted(wanted, key=lambda c: (known.get(c.augmenter, len(known)), c.augmenter)):
        methods.setdefault((cell.backbone, cell.readout, cell.learner), {})[cell.augmenter] = None
    groups = tuple(
        tuple(Row(method_name(augmenter, *place, labels), augmenter, *place) for augmenter in methods[place])
        for place in sorted(methods, key=lambda p: (p != ("gcn", "mean", "gnn"), p))
    )
    order = {dataset: place for place, (dataset, _) in enumerate(FIGURE.panels)}
    columns = [
        Column(dataset, k, str(k), (labels or {}).get(dataset, LONG_NAMES.get(dataset, dataset)))
        for dataset, k in sorted({(c.dataset, c.k) for c in wanted}, key=lambda d: (order.get(d[0], len(order)), d))
    ]
    for title, page in pages(name, columns, widest):
        yield TableSpec(title, caption, groups, page, corner="k", resize=False)


def pages(name: str, columns: Iterable[Column], widest: int = 8) -> Iterator[tuple[str, tuple[Column, ...]]]:
    """Columns on as many pages as they need, each with a name; columns of one dataset stay together."""
    found: list[list[Column]] = [[]]
    for _, block in itertools.groupby(columns, key=lambda column: column.dataset):
        together = list(block)
        if found[-1] and len(found[-1]) + len(together) > widest:
            found.append([])
        found[-1].extend(together)
    for number, page in enumerate(found, start=1):
        yield name if len(found) == 1 else f"{name}-{number}", tuple(page)
