"""Grids: which cells to run. The paper's grids come from its tables; users define their own in TOML files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.datasets.paths import data_root
from bench.learning import LEARNERS
from bench.plan.plugin_cache import Resolver
from bench.protocol.training import Training, preset
from bench.registry import UserError, unknown
from tables.layouts import Layout
from tables.own_specs import EVERY_NAME, needed
from tables.specs import NAMES, Coordinate

FOLDS, REPEATS = 10, 3
NETWORK = "gnn"  # the default learner
AXES = {  # of a grid, and the part of a coordinate that each varies
    "datasets": "dataset",
    "augmenters": "augmenter",
    "k": "k",
    "backbones": "backbone",
    "readouts": "readout",
    "learners": "learner",
}
STUDY = Path(__file__).with_name("studies") / "readings.toml"
QUICK_METHODS = (
    "none",
    "duplicate",
    "dropnode",
    "dropedge",
    "softedge",
    "m-mixup",
    "g-mixup",
    "gdm-rand",
    "gdm-acc",
    "gdm-unc",
)


@dataclass(frozen=True)
class Grid:
    """A set of coordinates and how each is run; `auto` leaves features and splits to the dataset."""

    name: str
    cells: tuple[Coordinate, ...]
    folds: int = FOLDS
    repeats: int = REPEATS
    preset: str = "standard"
    features: str = "auto"
    splits: str = "auto"
    metric: str = "auto"
    training: Mapping[str, Any] = field(default_factory=dict)
    space: Mapping[str, str] = field(default_factory=dict)  # search spaces that differ from the declared ones
    labels: Mapping[str, str] = field(default_factory=dict)  # names of methods, models and datasets in tables
    layout: Layout | None = None  # the table that the grid describes, if any

    def settled(self, at: Coordinate) -> tuple[Training, str]:
        """The training and features of one of its cells, which may differ from the grid's."""
        words = dict(at.where)
        features = words.pop("features", self.features)
        chosen = preset(words.pop("preset", self.preset)).with_settings(self.training)
        return chosen.with_settings(words) if words else chosen, features

    def __post_init__(self) -> None:
        if not 1 <= self.folds <= FOLDS:
            raise UserError(f"folds={self.folds} is not valid; give 1 to {FOLDS}")
        if not 1 <= self.repeats <= 1000:
            raise UserError(f"repeats={self.repeats} is not valid; give 1 to 1000")


def quick() -> Grid:
    """Every method once, on built-in data, in about two minutes on a laptop."""
    cells = product(datasets=["digits", "synthetic"], augmenters=QUICK_METHODS, k=[10])
    return Grid("quick", cells, folds=3, repeats=1, preset="quick")


def product(
    datasets: Sequence[str],
    augmenters: Sequence[str] = ("none",),
    k: Sequence[int] = (10,),
    backbones: Sequence[str] = ("gcn",),
    readouts: Sequence[str] = ("mean",),
    learners: Sequence[str] = (NETWORK,),
) -> tuple[Coordinate, ...]:
    """All combinations of the axes; backbones and readouts apply to learners that have a network."""
    models = [place for learner in learners for place in _models(learner, backbones, readouts)]
    order = itertools.product(datasets, k, models, augmenters)
    return tuple(dict.fromkeys(Coordinate(d, n, a, *model) for d, n, model, a in order))


def _models(learner: str, backbones: Sequence[str], readouts: Sequence[str]) -> list[tuple[str, str, str]]:
    if not has_network(learner):
        return [("", "", learner)]
    return [(backbone, readout, learner) for backbone, readout in itertools.product(backbones, readouts)]


def has_network(learner: str) -> bool:
    """Whether a learner is built from a backbone and a readout."""
    return learner == NETWORK or Resolver().resolve(LEARNERS, learner).flags["network"]


def named_grid(name: str, data: Path | None = None) -> Grid:
    """The grid with this name, or from this file; datasets named in the file are looked up in `data`."""
    if name == "quick":
        return quick()
    if name == STUDY.stem:
        from bench.plan.grid_files import read_grid

        return read_grid(STUDY, data_root(data))
    if name in (*EVERY_NAME, "full"):
        return Grid(name, needed(name), preset="paper" if name in (*NAMES, "full") else "standard")
    if name.endswith(".toml") or Path(name).is_file():
        from bench.plan.grid_files import read_grid

        return read_grid(Path(name), data_root(data))
    raise unknown("grid", name, ("quick", "full", STUDY.stem, *EVERY_NAME))


def narrowed(grid: Grid, axes: Mapping[str, Sequence[Any]]) -> Grid:
    """Only the cells whose axes have one of the given values; a value that the grid does not contain is an error."""
    cells: Iterable[Coordinate] = grid.cells
    for axis, wanted in axes.items():
        if not wanted:
            continue
        present = {getattr(cell, AXES[axis]) for cell in grid.cells}
        for value in wanted:
            if value not in present:
                known = ", ".join(str(p) for p in sorted(present) if p != "")
                raise UserError(f"the grid {grid.name} has no {AXES[axis]} {value}; it has: {known}")
        cells = [cell for cell in cells if getattr(cell, AXES[axis]) in wanted]
    kept = tuple(cells)
    if not kept:
        raise UserError(f"no cell of the grid {grid.name} matches all of these axes; use fewer")
    return replace(grid, cells=kept)
