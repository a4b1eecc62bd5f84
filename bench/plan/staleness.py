"""Whether a cell matches the current code and data and, if not, where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.datasets.fingerprints import known_fingerprint
from bench.plan.cells import Cell
from bench.plan.identity import REGISTRIES, stale_parts
from bench.plan.planner import Planner
from bench.protocol.splits import splits_fingerprint
from bench.registry import UserError
from tables.specs import Coordinate

Differences = dict[str, tuple[Any, Any]]


@dataclass
class Here:
    """The versions of code and data installed here."""

    data_root: Path
    _data: dict[str, str | None] = field(default_factory=dict)

    def differs(self, cell: Cell) -> Differences:
        """The versions of a cell that differ here, including the data's if known without loading it."""
        parts = stale_parts(cell)
        then, now = cell.versions.get("dataset"), self._data_version(cell.dataset)
        if now is not None and then != now:
            parts["dataset"] = (then, now)
        folds = self._folds(cell.dataset, cell.splits)
        if folds is not None and cell.versions.get("splits") != folds:
            parts["splits"] = (cell.versions.get("splits"), folds)
        return parts

    def _folds(self, dataset: str, family: str) -> str | None:
        key = f"{dataset} {family}"
        if key not in self._data:
            try:
                self._data[key] = splits_fingerprint(dataset, family, self.data_root)
            except UserError:  # splits that are not available here
                self._data[key] = None
        return self._data[key]

    def _data_version(self, dataset: str) -> str | None:
        if dataset not in self._data:
            try:
                self._data[dataset] = known_fingerprint(dataset, self.data_root)
            except UserError:  # a dataset that is unknown here
                self._data[dataset] = None
        return self._data[dataset]


def made_today(cell: Cell, root: Path) -> Cell:
    """The cell that the same specification gives now: labels contain what the user chose; everything else was a
    default.
    """
    versions = cell.versions
    planner = Planner(root, str(versions.get("engine")), str(versions.get("device", "cpu")))
    at = Coordinate(cell.dataset, cell.k, *map(cell.part_label, ("augmenter", "backbone", "readout", "learner")))
    obstacle = planner.obstacle(at)
    if obstacle:
        raise UserError(obstacle)
    made = planner.cell(at, cell.training, cell.features, cell.splits)
    by_fold = cell.by_fold and {fold: _fold_today(changes, planner) for fold, changes in cell.by_fold.items()}
    return replace(made, tuned=cell.tuned, tuned_from=cell.tuned_from, tuned_how=cell.tuned_how, by_fold=by_fold)


def _fold_today(changes: Mapping[str, Any], planner: Planner) -> dict[str, Any]:
    """What a tuned cell's fold changes, resolved from its labels now."""
    return {
        part: held if part == "training" else asdict(planner.resolver.resolve(REGISTRIES[part], held["label"]).choice)
        for part, held in changes.items()
    }


def nearest_cell(cells: Mapping[str, Cell], key: str) -> tuple[str, Differences] | None:
    """The other cell of a ledger that differs in the fewest parts."""
    others = ((other, differences(cells[key], cell)) for other, cell in cells.items() if other != key)
    return min(others, key=lambda item: (len(item[1]), item[0]), default=None)


def differences(one: Cell, other: Cell) -> Differences:
    """The differences between two cells, by dotted name."""
    first, second = _flat(one.to_json()), _flat(other.to_json())
    names = dict.fromkeys((*first, *second))
    return {name: (first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)}


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat
