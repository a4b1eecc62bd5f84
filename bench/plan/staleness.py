"""Whether a cell of the ledger is what the code and the data here would make, and if not, in what it differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from augmenters import AUGMENTERS
from bench.datasets.fingerprints import known_fingerprint
from bench.plan.identity import stale_parts
from bench.plan.planner import Planner
from bench.protocol.training import Training
from bench.registry import UserError
from bench.results.ledger import LedgerState, Record
from models import BACKBONES, READOUTS
from tables.specs import Coordinate

Differences = dict[str, tuple[Any, Any]]


@dataclass
class Here:
    """The versions of code and data that are installed here."""

    data_root: Path
    _data: dict[str, str | None] = field(default_factory=dict)

    def differs(self, cell: Record) -> Differences:
        """Versions of a cell that are others here, the data's included where it is known without loading it."""
        parts = stale_parts(cell)
        then, now = cell["versions"].get("dataset"), self._data_version(cell["dataset"])
        if now is not None and then != now:
            parts["dataset"] = (then, now)
        return parts

    def _data_version(self, dataset: str) -> str | None:
        if dataset not in self._data:
            try:
                self._data[dataset] = known_fingerprint(dataset, self.data_root)
            except UserError:  # a dataset that is not known here
                self._data[dataset] = None
        return self._data[dataset]


def made_today(cell: Record, planner: Planner) -> Record:
    """The cell that the same words give here and now: a label holds what the user chose, the rest was a default."""
    at = Coordinate(cell["dataset"], cell["k"], *(cell[kind]["label"] for kind in ("augmenter", "backbone", "readout")))
    obstacle = planner.obstacle(at)
    if obstacle:
        raise UserError(obstacle)
    known = {one.name for one in fields(Training)}
    training = Training(**{name: value for name, value in cell["training"].items() if name in known})
    made = planner.cell(at, training, cell["features"], cell["splits"])
    tuning: dict[str, Any] = {name: cell.get(name) for name in ("tuned", "tuned_from", "tuned_how", "by_fold")}
    if tuning["by_fold"]:
        tuning["by_fold"] = {fold: _fold_today(changes, planner) for fold, changes in tuning["by_fold"].items()}
    return replace(made, **tuning).to_json()


def _fold_today(changes: Mapping[str, Any], planner: Planner) -> dict[str, Any]:
    """What a tuned cell's fold changes, resolved from its labels here and now."""
    registries = {"augmenter": AUGMENTERS, "backbone": BACKBONES, "readout": READOUTS}
    return {
        part: held if part == "training" else asdict(planner.resolver.resolve(registries[part], held["label"]).choice)
        for part, held in changes.items()
    }


def find_cell(state: LedgerState, prefix: str) -> str:
    """The key that starts so."""
    found = [key for key in state.cells if key.startswith(prefix)]
    if not found:
        raise UserError(f"no cell of the ledger has a key that starts with '{prefix}'; `bench status` lists them")
    if len(found) > 1:
        raise UserError(f"'{prefix}' fits {len(found)} cells: {', '.join(sorted(found)[:5])}; give more of the key")
    return found[0]


def nearest_cell(state: LedgerState, key: str) -> tuple[str, Differences] | None:
    """The other cell of the ledger that differs in the fewest parts."""
    others = ((other, differences(state.cells[key], facts)) for other, facts in state.cells.items() if other != key)
    return min(others, key=lambda item: (len(item[1]), item[0]), default=None)


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Differences:
    """Where two cells differ, by dotted name."""
    first, second = _flat(one), _flat(other)
    names = dict.fromkeys((*first, *second))
    return {name: (first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)}


def _flat(facts: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in facts.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif f"{prefix}{name}" not in ("type", "key") and name != "label":
            flat[f"{prefix}{name}"] = value
    return flat
