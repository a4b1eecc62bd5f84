"""Grids: which cells to run. The paper's come from its tables; a user's own is a TOML file with the same words."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.registry import UserError, unknown
from tables.specs import NAMES, Coordinate, coordinates

FOLDS, REPEATS = 10, 3
AXES = {"datasets": str, "augmenters": str, "k": int, "backbones": str, "readouts": str}
SINGLE = {"name": str, "features": str, "splits": str, "folds": int, "repeats": int, "preset": str}
DEFAULT_AXES: dict[str, list[Any]] = {"augmenters": ["none"], "k": [10], "backbones": ["gcn"], "readouts": ["mean"]}
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
    preset: str = "paper"
    features: str = "auto"
    splits: str = "auto"
    training: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.folds <= FOLDS:
            raise UserError(f"folds={self.folds} is not valid; give 1 to {FOLDS}")
        if not 1 <= self.repeats <= 1000:
            raise UserError(f"repeats={self.repeats} is not valid; give 1 to 1000")


def quick() -> Grid:
    """Every method once over, on built-in data, in about two minutes on a laptop."""
    cells = product(datasets=["digits", "synthetic"], augmenters=QUICK_METHODS, k=[10])
    return Grid("quick", cells, folds=3, repeats=1, preset="quick")


def product(
    datasets: Sequence[str],
    augmenters: Sequence[str] = ("none",),
    k: Sequence[int] = (10,),
    backbones: Sequence[str] = ("gcn",),
    readouts: Sequence[str] = ("mean",),
) -> tuple[Coordinate, ...]:
    """All combinations of the axes."""
    order = itertools.product(datasets, k, backbones, readouts, augmenters)
    return tuple(dict.fromkeys(Coordinate(d, n, a, b, r) for d, n, b, r, a in order))


def named_grid(name: str) -> Grid:
    """A grid of the harness by name, or the file of that name."""
    if name == "quick":
        return quick()
    if name in (*NAMES, "full"):
        return Grid(name, coordinates(name))
    if name.endswith(".toml") or Path(name).is_file():
        return read_grid(Path(name))
    raise unknown("grid", name, ("quick", "full", *NAMES))


def narrowed(grid: Grid, axes: Mapping[str, Sequence[Any]]) -> Grid:
    """Only the cells whose axes have one of the given values; a value that the grid lacks is a mistake."""
    names = {"datasets": "dataset", "augmenters": "augmenter", "k": "k", "backbones": "backbone", "readouts": "readout"}
    cells: Iterable[Coordinate] = grid.cells
    for axis, wanted in axes.items():
        if not wanted:
            continue
        present = {getattr(cell, names[axis]) for cell in grid.cells}
        for value in wanted:
            if value not in present:
                known = ", ".join(str(p) for p in sorted(present))
                raise UserError(f"the grid {grid.name} has no {names[axis]} {value}; it has: {known}")
        cells = [cell for cell in cells if getattr(cell, names[axis]) in wanted]
    kept = tuple(cells)
    if not kept:
        raise UserError(f"no cell of the grid {grid.name} has all of these axes together; name fewer")
    return replace(grid, cells=kept)


def read_grid(path: Path) -> Grid:
    """A user's grid file: top-level axes, or `[[block]]` tables that each give a product of axes of their own."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"there is no grid file {path}; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the grid file {path}: {error}; it must be UTF-8 text") from error
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    return _Reader(path, text).grid(raw)


class _Reader:
    """Checks a parsed grid file; errors carry the line of the key or value they speak of."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def grid(self, raw: Mapping[str, Any]) -> Grid:
        blocks = raw.get("block", [])
        training = raw.get("training", {})
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise self.error("block", "must be written as [[block]] tables")
        if not isinstance(training, dict):
            raise self.error("training", "must be a [training] table")
        top = {key: value for key, value in raw.items() if key not in ("block", "training")}
        self.check_keys(top, {**AXES, **SINGLE})
        singles = {key: self.single(key, top[key]) for key in SINGLE if key in top}
        shared = {key: self.axis(key, top[key]) for key in AXES if key in top}
        cells: list[Coordinate] = []
        for block in blocks or [{}]:
            self.check_keys(block, AXES)
            axes = {**DEFAULT_AXES, **shared, **{key: self.axis(key, value) for key, value in block.items()}}
            if "datasets" not in axes:
                raise UserError(f'{self.path}: no datasets; add a line such as datasets = ["PROTEINS"]')
            cells.extend(product(**axes))
        name = singles.pop("name", self.path.stem)
        return Grid(name, tuple(dict.fromkeys(cells)), training=training, **singles)

    def check_keys(self, table: Mapping[str, Any], known: Mapping[str, type]) -> None:
        for key in table:
            if key not in known:
                raise self.error(key, str(unknown("key", key, (*known, "training", "block"))))

    def axis(self, key: str, value: Any) -> list[Any]:
        values = value if isinstance(value, list) else [value]
        if not values:
            raise self.error(key, "is empty; give one value or more")
        return [self.typed(key, item, AXES[key]) for item in values]

    def single(self, key: str, value: Any) -> Any:
        return self.typed(key, value, SINGLE[key])

    def typed(self, key: str, value: Any, kind: type) -> Any:
        if type(value) is not kind:
            raise self.error(key, f"takes {'whole numbers' if kind is int else 'text in quotes'}, not {value!r}")
        return value

    def error(self, key: str, reason: str) -> UserError:
        pattern = re.compile(rf"^\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*(=|\])")
        line = next((n for n, text in enumerate(self.lines, 1) if pattern.match(text)), None)
        place = f"{self.path} line {line}" if line else str(self.path)
        return UserError(f"{place}: {key}: {reason}")
