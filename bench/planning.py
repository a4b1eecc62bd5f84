"""From a grid to the trials that are still to run, with everything checked before the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augmenters import AUGMENTERS
from bench.cells import PROTOCOL, Cell, Trial, preset
from bench.datasets import cheap_info, load_dataset, resolve_dataset
from bench.features import resolve_features
from bench.grids import Grid
from bench.ledger import LedgerState, Record
from bench.provenance import minor_version
from bench.registry import UserError
from bench.splits import resolve_splits
from models import BACKBONES, READOUTS
from tables.specs import Coordinate

if TYPE_CHECKING:
    from augmenters.base import Augmenter
    from models.backbones import Backbone


@dataclass(frozen=True)
class Skipped:
    """A cell of the grid that cannot run, and why."""

    coordinate: Coordinate
    reason: str


@dataclass(frozen=True)
class Plan:
    """The cells of a grid, resolved, and the trials that each of them has."""

    grid: Grid
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]

    @property
    def trials(self) -> list[Trial]:
        """Breadth first over folds: an interrupted grid has the same folds of every cell."""
        return [Trial(fold, repeat) for repeat in range(self.grid.repeats) for fold in range(self.grid.folds)]

    def pending(self, state: LedgerState, retry: bool = True) -> list[tuple[Cell, Trial]]:
        """What the ledger does not hold yet; failed trials count as missing unless they are to be left."""
        settled = {
            cell.key: state.done(cell.key) | (set() if retry else set(state.failed(cell.key))) for cell in self.cells
        }
        return [(cell, trial) for trial in self.trials for cell in self.cells if trial not in settled[cell.key]]

    def record(self) -> Record:
        """The ledger's line about this plan, without its time."""
        return {
            "type": "plan",
            "grid": self.grid.name,
            "cells": [cell.key for cell in self.cells],
            "folds": list(range(self.grid.folds)),
            "repeats": list(range(self.grid.repeats)),
            "skipped": [{"cell": str(s.coordinate), "reason": s.reason} for s in self.skipped],
        }


def stamped(record: Record) -> Record:
    """A record with the time it was made."""
    return {**record, "at": datetime.now(UTC).isoformat(timespec="seconds")}


@dataclass
class Planner:
    """Resolves coordinates against the registries and the data root."""

    data_root: Path
    engine: str
    _versions: dict[str, str] = field(default_factory=dict)

    def plan(self, grid: Grid, skip_unavailable: bool = False) -> Plan:
        """Every cell of the grid that can run; an impossible one stops everything unless it may be skipped."""
        cells: dict[str, Cell] = {}
        skipped: list[Skipped] = []
        for coordinate in grid.cells:
            reason = self.obstacle(coordinate)
            if reason is None:
                cell = self.cell(coordinate, grid)
                cells[cell.key] = cell
            elif skip_unavailable:
                skipped.append(Skipped(coordinate, reason))
            else:
                raise UserError(f"{reason}; or add --skip-unavailable to run the rest without it")
        if not cells:
            raise UserError(f"no cell of the grid {grid.name} can run: {skipped[0].reason}")
        return Plan(grid, tuple(cells.values()), tuple(skipped))

    def obstacle(self, at: Coordinate) -> str | None:
        """Why a cell cannot run here, if it cannot."""
        if not cheap_info(at.dataset, self.data_root).present:
            return (
                f"{at.dataset} is not in the data root {self.data_root}; run `bench data fetch {at.dataset}` "
                f"or `bench data import PATH` with a copy of it"
            )
        augmenter: type[Augmenter] = AUGMENTERS.load(AUGMENTERS.resolve(at.augmenter).name)
        backbone: type[Backbone] = BACKBONES.load(BACKBONES.resolve(at.backbone).name)
        if augmenter.weighted and not backbone.reads_edge_weight:
            return f"{at.augmenter} makes edge weights, which {at.backbone} does not read; use gcn, gin or sage"
        return None

    def cell(self, at: Coordinate, grid: Grid) -> Cell:
        """A coordinate with every setting resolved."""
        dataset = resolve_dataset(at.dataset, self.data_root).label
        augmenter, backbone, readout = (
            AUGMENTERS.resolve(at.augmenter),
            BACKBONES.resolve(at.backbone),
            READOUTS.resolve(at.readout),
        )
        known = cheap_info(dataset, self.data_root).has_features
        has_features = load_dataset(dataset, self.data_root).has_features if known is None else known
        return Cell(
            dataset=dataset,
            features=resolve_features(grid.features, has_features, dataset),
            splits=resolve_splits(dataset, grid.splits, self.data_root),
            k=at.k,
            augmenter=augmenter,
            backbone=backbone,
            readout=readout,
            training=preset(grid.preset).with_settings(grid.training),
            versions={
                **current_versions(augmenter.name, backbone.name, readout.name, self.engine),
                "dataset": self._fingerprint(dataset),
            },
        )

    def _fingerprint(self, dataset: str) -> str:
        if dataset not in self._versions:
            self._versions[dataset] = load_dataset(dataset, self.data_root).fingerprint
        return self._versions[dataset]


def current_versions(augmenter: str, backbone: str, readout: str, engine: str) -> dict[str, Any]:
    """The versions that decide whether two numbers may stand in one table."""
    return {
        "protocol": PROTOCOL,
        "engine": engine,
        "augmenter": AUGMENTERS.entry(augmenter).version,
        "backbone": BACKBONES.entry(backbone).version,
        "readout": READOUTS.entry(readout).version,
        "torch": minor_version("torch"),
        "torch-geometric": minor_version("torch-geometric"),
    }


def stale_parts(cell: Record) -> dict[str, tuple[Any, Any]]:
    """The versions under which a ledger's cell was measured and that are others now: then and now."""
    then = cell["versions"]
    augmenter, backbone, readout = (cell[kind]["name"] for kind in ("augmenter", "backbone", "readout"))
    now = current_versions(augmenter, backbone, readout, then.get("engine", ""))
    return {part: (then.get(part), value) for part, value in now.items() if then.get(part) != value}


def count_done(plan: Plan, state: LedgerState) -> int:
    """How many of a plan's trials the ledger holds."""
    wanted = set(plan.trials)
    return sum(len(state.done(cell.key) & wanted) for cell in plan.cells)


def cells_by_dataset(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Cells grouped as a reader would list them."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.dataset, []).append(cell)
    return groups
