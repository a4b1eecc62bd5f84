"""Tables that the paper does not have, specified like the paper's; and what a grid named after a table runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tables.specs import (
    FIGURE,
    LABEL_RATES,
    MEASURE,
    METHODS,
    NAMES,
    SHORT_NAMES,
    TABLES,
    Column,
    Coordinate,
    FigureSpec,
    Row,
    TableSpec,
    coordinates,
    pages,
)

LEARNERS = (
    ("Majority", "majority"),
    ("Size", "size"),
    ("Histogram", "histogram"),
    ("Statistics", "statistics"),
    ("WL", "wl"),
    ("DeepSets", "deepsets"),
    ("Random GIN", "random-gin"),
)
BACKBONES = (("GCN", "gcn"), ("GIN", "gin"), ("GraphSAGE", "sage"), ("GAT", "gat"))
READOUTS = (("Mean", "mean"), ("Add", "add"), ("Max", "max"))
CLUSTERS = (("DiffPool", "diffpool"), ("MinCut", "mincut"))
PLAIN_GCN = Row("GCN Mean", "none")
MORE_AUGMENTERS = (  # built-in methods that the paper does not compare, in the order of the registry
    ("SubMix", "submix"),
    ("NodeSam", "nodesam"),
    ("ifMixup", "ifmixup"),
    ("GraphCrop", "graphcrop"),
    ("MaskAttr", "maskattr"),
    ("PerturbEdge", "perturbedge"),
    ("Subgraph", "subgraph"),
    ("DropPath", "droppath"),
    ("FeatureNoise", "featurenoise"),
    ("FLAG", "flag"),
    ("Graph Transplant", "graph-transplant"),
    ("S-Mixup", "s-mixup"),
    ("FGWMixup", "fgw-mixup"),
    ("GeoMix", "geomix"),
)
CONTROLS = ("duplicate", "gdm-complete", "gdm-identity", "gdm-cal")  # GDM's mechanism, taken apart
GDM_RAND = Row("GDM Rand", "gdm-rand")
AT_TEN = tuple(Column(dataset, 10, head) for dataset, head in SHORT_NAMES.items())
WITHOUT_NETWORK = tuple(Row(shown, "none", "", "", learner) for shown, learner in LEARNERS)


def _networks() -> tuple[tuple[Row, ...], ...]:
    """Plain training: one group per backbone, with the clustering readouts on the first one."""
    return tuple(
        tuple(
            Row(f"{name} {shown}", "none", backbone, readout)
            for shown, readout in (READOUTS + CLUSTERS if backbone == "gcn" else READOUTS)
        )
        for name, backbone in BACKBONES
    )


OWN_TABLES: dict[str, TableSpec] = {
    spec.name: spec
    for spec in (
        TableSpec(
            "learners",
            f"{MEASURE} of learners without a network, plain networks and the paper's best augmenter, "
            "with 10 labeled graphs per class.",
            (
                WITHOUT_NETWORK,
                *_networks(),
                (Row("GDM Acc", "gdm-acc"),),
            ),
            AT_TEN,
            corner="Dataset",
            resize=False,
            reference=PLAIN_GCN,
        ),
        TableSpec(
            "augmenters",
            f"{MEASURE} of every augmenter, with 10 labeled graphs per class.",
            ((*METHODS, GDM_RAND), tuple(Row(name, augmenter) for name, augmenter in MORE_AUGMENTERS)),
            AT_TEN,
            corner="Dataset",
            resize=False,
        ),
        TableSpec(
            "controls",
            f"{MEASURE} of GDM and of controls that take its mechanism apart, with 10 labeled graphs per class.",
            ((METHODS[0], *(Row(name, name) for name in CONTROLS), GDM_RAND, *METHODS[-2:]),),
            AT_TEN,
            corner="Dataset",
            resize=False,
        ),
    )
}
LEARNERS_BY_K = FigureSpec(
    "learners_by_k",
    f"{MEASURE} of learners without a network, plain networks with the mean readout and the paper's best augmenter.",
    FIGURE.panels,
    LABEL_RATES,
    (*WITHOUT_NETWORK, *(Row(name, "none", backbone) for name, backbone in BACKBONES), Row("GDM Acc", "gdm-acc")),
)
EVERY_NAME = (*NAMES, *OWN_TABLES, LEARNERS_BY_K.name)


def needed(name: str) -> tuple[Coordinate, ...]:
    """The cells that a grid of this name runs: those of a table with its additional rows, of a figure, or of all."""
    if name == LEARNERS_BY_K.name:
        return LEARNERS_BY_K.coordinates()
    spec = TABLES.get(name) or OWN_TABLES.get(name)
    return spec.needed() if spec else coordinates(name)


def trimmed(spec: TableSpec, there: Collection[Coordinate]) -> TableSpec:
    """The rows and columns of a table that have a cell of their own: what was run of it, without the rest."""
    held = [(row, column) for row in spec.rows for column in spec.columns if spec.at(row, column) in there]
    rows, columns = {row for row, _ in held}, {column for _, column in held}
    groups = tuple(tuple(row for row in group if row in rows) for group in spec.groups)
    return replace(
        spec, groups=tuple(filter(None, groups)), columns=tuple(one for one in spec.columns if one in columns)
    )


def specified() -> frozenset[Coordinate]:
    """Every cell that some table prints once it exists."""
    return frozenset(place for name in (*NAMES, *OWN_TABLES) for place in needed(name)) | without_network_by_k()


def without_network_by_k() -> frozenset[Coordinate]:
    """The cells that only the figure of learners has: networks over the label rates are also in other tables."""
    return frozenset(place for place in LEARNERS_BY_K.coordinates() if not place.backbone)


def learners_by_k(there: Collection[Coordinate] = ()) -> Iterator[TableSpec]:
    """The figure of learners as tables of the datasets and label rates that have a number; all of them if none has."""
    figure = LEARNERS_BY_K
    held = {(place.dataset, place.k) for place in there if place in figure.coordinates()}
    columns = [Column(dataset, k, str(k), title) for dataset, title in figure.panels for k in figure.rates]
    shown = [column for column in columns if not held or (column.dataset, column.k) in held]
    networks = tuple(row for row in figure.rows if row.backbone and row.augmenter == "none")
    best = tuple(row for row in figure.rows if row.augmenter != "none")
    for title, page in pages(figure.name, shown):
        groups = (WITHOUT_NETWORK, networks, best)
        yield TableSpec(title, figure.caption, groups, page, corner="k", resize=False, reference=networks[0])
