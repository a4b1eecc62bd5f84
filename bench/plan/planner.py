"""From a grid to the trials that are still to run, with everything checked before the first of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from augmenters import AUGMENTERS
from bench.datasets import cheap_info, is_weighted, load_dataset, resolve_dataset
from bench.datasets.fingerprints import fingerprint
from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid
from bench.plan.identity import current_versions
from bench.plan.plugin_cache import Resolver
from bench.protocol.features import resolve_features
from bench.protocol.splits import resolve_splits
from bench.protocol.training import Training, preset
from bench.registry import UserError
from bench.results.ledger import LedgerState, Record
from models import BACKBONES, READOUTS
from tables.specs import Coordinate


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

    @property
    def size(self) -> int:
        """The number of trials of all cells together."""
        return len(self.cells) * self.grid.folds * self.grid.repeats

    def pending(self, state: LedgerState, retry: bool = True) -> list[tuple[Cell, Trial]]:
        """What the ledger does not hold yet; failed trials count as missing unless they are to be left."""
        settled = {
            cell.key: state.done(cell.key) | (set() if retry else set(state.failed(cell.key))) for cell in self.cells
        }
        return [(cell, trial) for trial in self.trials for cell in self.cells if trial not in settled[cell.key]]

    def done(self, state: LedgerState) -> int:
        """How many of the trials the ledger holds."""
        wanted = set(self.trials)
        return sum(len(state.done(cell.key) & wanted) for cell in self.cells)

    def failures(self, state: LedgerState) -> list[tuple[Cell, Record]]:
        """The trials that were tried and have no result, by cell, fold and repeat."""
        wanted = set(self.trials)
        return [
            (cell, record)
            for cell in self.cells
            for trial, record in sorted(state.failed(cell.key).items())
            if trial in wanted
        ]

    def record(self) -> Record:
        """The ledger's line about this plan, without its time."""
        return {
            "type": "plan",
            "grid": self.grid.name,
            "cells": [cell.key for cell in self.cells],
            "folds": list(range(self.grid.folds)),
            "repeats": list(range(self.grid.repeats)),
            "skipped": [{"cell": asdict(s.coordinate), "reason": s.reason} for s in self.skipped],
        }


def stamped(record: Record) -> Record:
    """A record with the time it was made."""
    return {**record, "at": datetime.now(UTC).isoformat(timespec="seconds")}


@dataclass(frozen=True)
class _Place:
    """What all cells of one dataset share: resolved once, since some of it means reading files."""

    label: str
    features: str
    splits: str
    fingerprint: str


@dataclass
class Planner:
    """Resolves coordinates against the registries and the data root."""

    data_root: Path
    engine: str
    resolver: Resolver = field(default_factory=Resolver)
    _present: dict[str, bool] = field(default_factory=dict)
    _places: dict[tuple[str, str, str], _Place] = field(default_factory=dict)

    def plan(self, grid: Grid, skip_unavailable: bool = False) -> Plan:
        """Every cell of the grid that can run; an impossible one stops everything unless it may be skipped."""
        training = preset(grid.preset).with_settings(grid.training)
        cells: dict[str, Cell] = {}
        skipped: list[Skipped] = []
        for coordinate in grid.cells:
            reason = self.obstacle(coordinate)
            if reason is None:
                cell = self.cell(coordinate, training, grid.features, grid.splits)
                cells[cell.key] = cell
            elif skip_unavailable:
                skipped.append(Skipped(coordinate, reason))
            else:
                raise UserError(f"{reason}; or add --skip-unavailable to run the rest without it")
        self.resolver.save()
        if not cells:
            raise UserError(f"no cell of the grid {grid.name} can run: {skipped[0].reason}")
        return Plan(grid, tuple(cells.values()), tuple(skipped))

    def obstacle(self, at: Coordinate) -> str | None:
        """Why a cell cannot run here, if it cannot."""
        augmenter = self.resolver.resolve(AUGMENTERS, at.augmenter)
        backbone = self.resolver.resolve(BACKBONES, at.backbone)
        if at.dataset not in self._present:
            self._present[at.dataset] = cheap_info(at.dataset, self.data_root).present
        if not self._present[at.dataset]:
            return (
                f"{at.dataset} is not in the data root {self.data_root}; run `bench data fetch {at.dataset}` "
                f"or `bench data import PATH` with a copy of it"
            )
        if not backbone.flags["reads_edge_weight"]:
            if augmenter.flags["weighted"]:
                return f"{at.augmenter} makes edge weights, which {at.backbone} does not read; use gcn, gin or sage"
            if is_weighted(at.dataset, self.data_root):
                return f"{at.dataset} has edge weights, which {at.backbone} does not read; use gcn, gin or sage"
        return None

    def cell(self, at: Coordinate, training: Training, features: str = "auto", splits: str = "auto") -> Cell:
        """A coordinate with every setting resolved."""
        place = self._place(at.dataset, features, splits)
        augmenter = self.resolver.resolve(AUGMENTERS, at.augmenter).choice
        backbone = self.resolver.resolve(BACKBONES, at.backbone).choice
        readout = self.resolver.resolve(READOUTS, at.readout).choice
        return Cell(
            dataset=place.label,
            features=place.features,
            splits=place.splits,
            k=at.k,
            augmenter=augmenter,
            backbone=backbone,
            readout=readout,
            training=training,
            versions={
                **current_versions(augmenter.name, backbone.name, readout.name, self.engine),
                "dataset": place.fingerprint,
            },
        )

    def _place(self, dataset: str, features: str, splits: str) -> _Place:
        key = (dataset, features, splits)
        if key not in self._places:
            label = resolve_dataset(dataset, self.data_root).label
            known = cheap_info(label, self.data_root).has_features
            has_features = load_dataset(label, self.data_root).has_features if known is None else known
            self._places[key] = _Place(
                label,
                resolve_features(features, has_features, label),
                resolve_splits(label, splits, self.data_root),
                fingerprint(label, self.data_root),
            )
        return self._places[key]
