"""Carries results over to the keys of this version if nothing that affects their digits has changed.

A release that adds a setting, or records more about the identity of a number, changes all keys. The numbers remain
valid if everything recorded about them still holds: the same settings, versions and data. This is checked cell by cell;
cells that fail are left out, with the reason. `bench verify` then shows that the digits are reproduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.datasets import load_dataset
from bench.datasets.legacy import legacy_fingerprint
from bench.plan.cells import Cell
from bench.plan.planner import Planner
from bench.protocol.seeds import weights_name
from bench.protocol.training import Training
from bench.registry import UserError
from bench.results.records import CellRecord, Flaw, PlanRecord, Record, parse
from tables.specs import Coordinate

Planners = Callable[[str, str], Planner]  # by engine and device
# Before the setting `head` existed, all heads were linear, and such a training was at first named after the paper.
_FORMER_PRESETS = {"paper": "standard"}


@dataclass
class Rekeyed:
    """What was carried over, and what was not."""

    records: list[Record] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)  # from the former key of each cell to its current key
    refused: dict[str, list[str]] = field(default_factory=dict)  # cells that were not carried over, by reason
    trials: int = 0


def rekey(lines: Iterable[Mapping[str, Any]], root: Path) -> Rekeyed:
    """The records of a ledger or archive under current keys; `lines` are its raw lines."""
    found, rest = Rekeyed(), []
    planner = lru_cache(maxsize=None)(lambda engine, device: Planner(root, engine, device))
    for raw in lines:
        if raw.get("type") == "cell":
            _take_cell(raw, planner, found)
        else:
            rest.append(raw)
    for raw in rest:
        record = _moved(raw, found.keys)
        if record is not None:
            found.records.append(record)
            found.trials += raw["type"] == "trial"
    return found


def _take_cell(raw: Mapping[str, Any], planner: Planners, found: Rekeyed) -> None:
    try:
        versions = raw["versions"]
        cell = _today(raw, planner(versions["engine"], versions.get("device", "cpu")))
    except (UserError, KeyError, TypeError) as error:
        found.refused.setdefault(str(error), []).append(str(raw.get("key")))
        return
    found.keys[raw["key"]] = cell.key
    found.records.append(CellRecord(cell.key, cell))


def _moved(raw: Mapping[str, Any], keys: Mapping[str, str]) -> Record | None:
    """A trial or plan with the new keys of its cells; None if its cells were not carried over."""
    try:
        if raw.get("type") == "trial":
            return parse({**raw, "cell": keys[raw["cell"]]}) if raw["cell"] in keys else None
        record = parse(dict(raw))
    except Flaw as error:
        raise UserError(f"a record cannot be carried over ({error}); restore a copy or delete it") from error
    if isinstance(record, PlanRecord):
        return replace(record, cells=tuple(keys[key] for key in record.cells if key in keys))
    return record


def _today(raw: Mapping[str, Any], planner: Planner) -> Cell:
    """The current cell of the same specification, if everything recorded about it still holds."""
    first_format = "learner" not in raw
    versions, former = raw["versions"], dict(raw["training"])
    if "head" not in former:
        base, plus, changes = former["preset"].partition("+")
        former["preset"] = f"{_FORMER_PRESETS.get(base, base)}{plus}{changes}"
    training = replace(Training(), preset=former["preset"]).with_settings(
        {name: value for name, value in former.items() if name != "preset"}
    )
    if first_format and raw.get("backbone") and weights_name(raw["backbone"]["label"]) != raw["backbone"]["label"]:
        raise UserError(f"{raw['backbone']['label']} started from different weights in that version")
    labels: dict[str, Any] = {
        part: raw[part]["label"] if raw.get(part) else "" for part in ("augmenter", "backbone", "readout")
    }
    learner = "gnn" if first_format else raw["learner"]["label"]
    at = Coordinate(raw["dataset"], raw["k"], **labels, learner=learner)
    obstacle = planner.obstacle(at)
    if obstacle:
        raise UserError(obstacle)
    cell = planner.cell(at, training, raw["features"], raw["splits"])
    cell = replace(cell, tuned=raw.get("tuned", False), tuned_from=raw.get("tuned_from"))
    then, now = dict(raw), cell.to_json()
    if first_format:
        data = load_dataset(cell.dataset, planner.data_root)
        if versions["dataset"] != legacy_fingerprint(data):
            raise UserError(f"{cell.dataset} in {planner.data_root} is not the data that was used")
        then = {**then, "versions": {k: v for k, v in versions.items() if k != "dataset"}}
    _refuse_changes(then, now)
    return cell


def _refuse_changes(then: Mapping[str, Any], now: Mapping[str, Any], where: str = "") -> None:
    """Recorded values must be unchanged; values that were not recorded (an added setting) are allowed."""
    for name, value in then.items():
        if where == "" and name in ("type", "key"):
            continue
        if isinstance(value, Mapping) and isinstance(now.get(name), Mapping):
            _refuse_changes(value, now[name], f"{where}{name}.")
        elif now.get(name) != value and not (where == "training." and name == "preset"):
            raise UserError(f"{where}{name} was {value} and is {now.get(name)} here")
