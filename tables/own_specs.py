"""Tables that the paper does not have, by the same words as its own; and what a grid named after a table runs."""

from __future__ import annotations

from tables.specs import FIGURE, MEASURE, NAMES, SHORT_NAMES, TABLES, Column, Coordinate, Row, TableSpec, coordinates

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


def _networks() -> tuple[tuple[Row, ...], ...]:
    """Plain training: one group per backbone, the readouts with clusters on the first."""
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
                tuple(Row(shown, "none", "", "", learner) for shown, learner in LEARNERS),
                *_networks(),
                (Row("GDM Acc", "gdm-acc"),),
            ),
            tuple(Column(dataset, 10, head) for dataset, head in SHORT_NAMES.items()),
            corner="Dataset",
            resize=False,
            reference=PLAIN_GCN,
        ),
    )
}
EVERY_NAME = (*NAMES, *OWN_TABLES)


def needed(name: str) -> tuple[Coordinate, ...]:
    """The cells that a grid of this name runs: those of a table with what stands beside it, of the figure, of all."""
    spec = TABLES.get(name) or OWN_TABLES.get(name)
    return spec.needed() if spec else coordinates(name)


def specified() -> frozenset[Coordinate]:
    """Every cell that some table or the figure prints."""
    return frozenset(place for name in EVERY_NAME for place in needed(name)) | frozenset(FIGURE.coordinates())
