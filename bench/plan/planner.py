"""From a grid to the trials that have to be run; everything is checked before the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from augmenters import AUGMENTERS
from bench.datasets import cheap_info, is_weighted, load_dataset, resolve_dataset
from bench.datasets.fingerprints import fingerprint
from bench.learning import LEARNERS
from bench.plan.cells import PARTS, Cell, Trial
from bench.plan.grids import Grid
from bench.plan.identity import DEFAULT_ENGINE, NO_ENGINE, REGISTRIES, current_versions, device_kind, plugin_version
from bench.plan.plugin_cache import Resolver
from bench.plan.sharding import Shard
from bench.protocol.features import resolve_features
from bench.protocol.registries import METRICS, USUAL_METRIC
from bench.protocol.splits import count_folds, resolve_splits, splits_fingerprint
from bench.protocol.training import Training, featureless, left_to_reference
from bench.registry import UserError
from bench.words import counted
from models import BACKBONES, READOUTS
from tables.specs import Coordinate


class Measured(Protocol):
    """A source of the trials of a cell that were tried: a ledger."""

    def done(self, key: str) -> set[Trial]: ...

    def failed(self, key: str) -> Mapping[Trial, Any]: ...


@dataclass(frozen=True)
class Skipped:
    """A cell of the grid that cannot run, and the reason."""

    coordinate: Coordinate
    reason: str


@dataclass(frozen=True)
class Plan:
    """The resolved cells of a grid, and their trials."""

    grid: Grid
    cells: tuple[Cell, ...]
    skipped: tuple[Skipped, ...]
    handed_over: Mapping[str, str] = field(default_factory=dict)  # keys that the reference engine runs, and why
    shard: Shard | None = None  # the part of the plan that this machine runs

    @property
    def trials(self) -> list[Trial]:
        """Breadth first over folds: an interrupted grid has the same folds of every cell."""
        return [Trial(fold, repeat) for repeat in range(self.grid.repeats) for fold in range(self.grid.folds)]

    def __repr__(self) -> str:
        lacking = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Plan {self.grid.name}: {counted(len(self.cells), 'cell')}, {counted(self.size, 'trial')}{lacking}>"

    @property
    def size(self) -> int:
        """The number of trials of all cells."""
        return len(self.cells) * self.grid.folds * self.grid.repeats if self.shard is None else len(self._part)

    @cached_property
    def _part(self) -> frozenset[tuple[str, Trial]]:
        assert self.shard is not None
        return self.shard.of(self.cells, self.trials)

    def includes(self, cell: Cell, trial: Trial) -> bool:
        """Whether a trial is in the part that this machine runs."""
        return self.shard is None or (cell.key, trial) in self._part

    def pending(self, state: Measured, retry: bool = True) -> list[tuple[Cell, Trial]]:
        """The trials that are not in the ledger; failed ones count as missing if they are to be retried."""
        settled = {
            cell.key: state.done(cell.key) | (set() if retry else set(state.failed(cell.key))) for cell in self.cells
        }
        return [
            (cell, trial)
            for trial in self.trials
            for cell in self.cells
            if trial not in settled[cell.key] and self.includes(cell, trial)
        ]

    def done(self, state: Measured) -> int:
        """How many of the trials are in the ledger."""
        wanted = set(self.trials)
        return sum(self.includes(cell, trial) for cell in self.cells for trial in state.done(cell.key) & wanted)


@dataclass(frozen=True)
class _Place:
    """What all cells of a dataset share; resolved once, because part of it means reading files."""

    label: str
    features: str
    splits: str
    fingerprint: str
    folds: str  # fingerprint of the splits
    count: int  # number of folds
    metric: str


@dataclass
class Planner:
    """Resolves coordinates against the registries and the data root."""

    data_root: Path
    engine: str = DEFAULT_ENGINE
    device: str = "cpu"
    resolver: Resolver = field(default_factory=Resolver)
    _present: dict[str, bool] = field(default_factory=dict)
    _places: dict[tuple[str, ...], _Place] = field(default_factory=dict)

    def plan(self, grid: Grid, skip_unavailable: bool = False) -> Plan:
        """All cells of the grid that can run; one that cannot is an error unless it may be skipped."""
        cells: dict[str, Cell] = {}
        skipped: list[Skipped] = []
        slow: dict[str, str] = {}
        for coordinate in grid.cells:
            reason = self.obstacle(coordinate)
            if reason is None:
                own, features = grid.settled(coordinate)
                cell = self.cell(coordinate, own, features, grid.splits, grid.metric)
                cells[cell.key] = cell
                if cell.versions["engine"] not in (self.engine, NO_ENGINE):
                    slow[cell.key] = self.not_fast(coordinate, own) or ""
            elif skip_unavailable:
                skipped.append(Skipped(coordinate, reason))
            else:
                raise UserError(f"{reason}; or add --skip-unavailable to run the rest without it")
        self.resolver.save()
        grid = replace(grid, folds=min(grid.folds, self._common_folds(grid)))
        if not cells:
            raise UserError(f"no cell of the grid {grid.name} can run: {skipped[0].reason}")
        return Plan(grid, tuple(cells.values()), tuple(skipped), slow)

    def _common_folds(self, grid: Grid) -> int:
        """The number of folds of the datasets of a grid, which must agree: a plan uses the same folds of each."""
        counts = {place.label: place.count for place in self._places.values()}
        fewest = min(counts.values(), default=grid.folds)
        other = next((name for name, count in counts.items() if min(count, grid.folds) != fewest), None)
        if fewest < grid.folds and other is not None:
            first = next(name for name, count in counts.items() if count == fewest)
            raise UserError(
                f"{first} has {fewest} {'fold' if fewest == 1 else 'folds'} and {other} has {counts[other]}; "
                f"run them in separate commands (in the same workspace), or give --folds {fewest}"
            )
        return fewest

    def obstacle(self, at: Coordinate) -> str | None:
        """Why a cell cannot run here, if it cannot."""
        learner = self.resolver.resolve(LEARNERS, at.learner)
        augmenter = self.resolver.resolve(AUGMENTERS, at.augmenter).choice.name
        if lacking := AUGMENTERS.entry(augmenter).lacks:
            return lacking
        network = learner.flags["network"]
        backbone = self.resolver.resolve(BACKBONES, at.backbone).choice.name if network else None
        readout = self.resolver.resolve(READOUTS, at.readout).choice.name if network else None
        if at.dataset not in self._present:
            self._present[at.dataset] = cheap_info(at.dataset, self.data_root).present
        if not self._present[at.dataset]:
            return (
                f"{at.dataset} is not in the data root {self.data_root}; run `bench data fetch {at.dataset}` "
                f"or `bench data import PATH` with a copy of it"
            )
        reads_weights = not network or self.resolver.resolve(BACKBONES, at.backbone).flags["reads_edge_weight"]
        if not reads_weights and is_weighted(at.dataset, self.data_root):
            return f"{at.dataset} has edge weights, which {at.backbone} does not read; use gcn, gin or sage"
        refusal = self.resolver.refusal(learner.choice.name, augmenter, backbone, readout)
        return refusal and f"{at.augmenter} with {at.backbone if network else learner.choice}: {refusal}"

    def _network(self, at: Coordinate) -> bool:
        """Whether the learner is built from a backbone and a readout."""
        return self.resolver.resolve(LEARNERS, at.learner).flags["network"]

    def cell(
        self, at: Coordinate, training: Training, features: str = "auto", splits: str = "auto", metric: str = "auto"
    ) -> Cell:
        """A coordinate with every setting resolved."""
        place = self._place(at.dataset, features, splits, featureless(training.preset))
        judged = METRICS.resolve(place.metric if metric == "auto" else metric).label
        judged_version = {} if judged == USUAL_METRIC else {"metric": plugin_version(METRICS, judged.partition(":")[0])}
        words = {"learner": at.learner, "augmenter": at.augmenter}
        if self._network(at):
            words |= {"backbone": at.backbone, "readout": at.readout}
        parts = {part: self.resolver.resolve(REGISTRIES[part], word).choice for part, word in words.items()}
        names = {part: parts[part].name if part in parts else None for part in PARTS}
        return Cell(
            dataset=place.label,
            features=place.features,
            splits=place.splits,
            k=at.k,
            learner=parts["learner"],
            augmenter=parts["augmenter"],
            backbone=parts.get("backbone"),
            readout=parts.get("readout"),
            training=training,
            versions={
                **current_versions(names, self._engine(at, training), self.device),
                "dataset": place.fingerprint,
                "splits": place.folds,
                **judged_version,
            },
            metric=None if judged == USUAL_METRIC else judged,
        )

    def _engine(self, at: Coordinate, training: Training) -> str:
        """The engine that will run a cell, which may differ from the requested one."""
        if not self._network(at):
            return NO_ENGINE
        return "reference" if self.engine == "fast" and self.not_fast(at, training) else self.engine

    def not_fast(self, at: Coordinate, training: Training) -> str | None:
        """Why the fast engine hands a cell over to the reference engine; None if it does not."""
        if device_kind(self.device) != "cpu":
            return f"device {self.device}"
        specs = ((AUGMENTERS, at.augmenter), (BACKBONES, at.backbone), (READOUTS, at.readout))
        choices = [self.resolver.resolve(*spec).choice for spec in specs]
        return left_to_reference(training, choices[1].settings) or self.resolver.engine_obstacle(*choices)

    def _place(self, dataset: str, features: str, splits: str, otherwise: str) -> _Place:
        key = (dataset, features, splits, otherwise)
        if key not in self._places:
            label = resolve_dataset(dataset, self.data_root).label
            known = cheap_info(label, self.data_root).has_features
            has_features = load_dataset(label, self.data_root).has_features if known is None else known
            self._places[key] = _Place(
                label,
                resolve_features(features, has_features, label, otherwise),
                (family := resolve_splits(label, splits, self.data_root)),
                fingerprint(label, self.data_root),
                splits_fingerprint(label, family, self.data_root),
                count_folds(label, family, self.data_root),
                cheap_info(label, self.data_root).metric,
            )
        return self._places[key]
