"""What a line of a ledger says, as typed records with one validator.

A ledger or a published file may come from anywhere, so nothing is believed before `parse` has looked at it. Standard
library only: the command line reads ledgers without waiting for torch or pandas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from bench.plan.cells import Cell, Trial
from bench.registry import UserError

if TYPE_CHECKING:  # it reads datasets; records are read without
    from bench.plan.planner import Plan

Fits = Callable[[Any], bool]
Status = Literal["done", "failed", "diverged"]
STATUSES: tuple[Status, ...] = ("done", "failed", "diverged")
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")  # fractions of one
CIRCUMSTANCES = ("seconds", "finished", "provenance")  # of a measurement; everything else is its result
_HUGE = 1e300
_MOST_TRIALS = 100_000  # of one plan and cell; a short line could ask for billions


class Flaw(ValueError):
    """Why a record cannot be used, in words that follow "it is not a record: "."""


@dataclass(slots=True)
class TrialRecord:
    """One trial that was tried: its scores, or why there are none."""

    cell: str
    fold: int
    repeat: int
    status: Status
    reason: str | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    loss: float | None = None
    labels: int | None = None  # labeled graphs that it was trained on
    engine: str | None = None  # the engine that ran, and on what kind of device: "fast/cpu"
    handed_over: str | None = None  # why the engine that was asked for did not run it
    predicted: dict[str, float] = field(default_factory=dict)  # share of the test graphs put in each class
    seconds: dict[str, float] = field(default_factory=dict)
    generated: dict[str, float] = field(default_factory=dict)
    curve: list[list[float]] = field(default_factory=list)  # pairs of an epoch and its training loss
    finished: str | None = None
    provenance: str | None = None

    @property
    def trial(self) -> Trial:
        return Trial(self.fold, self.repeat)

    @property
    def done(self) -> bool:
        return self.status == "done"

    def to_json(self) -> dict[str, Any]:
        """The ledger's line; what says nothing is left out."""
        facts: dict[str, Any] = {"type": "trial"}
        for name in _TRIAL_FIELDS:
            value = getattr(self, name)
            if value is not None and value != {} and value != []:
                facts[name] = value
        return facts


@dataclass(frozen=True)
class PlanRecord:
    """What a run set out to do."""

    grid: str
    cells: tuple[str, ...]
    folds: tuple[int, ...]
    repeats: tuple[int, ...]
    skipped: tuple[Mapping[str, Any], ...] = ()  # cells of the grid that could not run: {"cell": ..., "reason": ...}
    at: str | None = None

    @classmethod
    def of(cls, plan: Plan) -> PlanRecord:
        """What a plan sets out to do, without the time."""
        skipped = tuple({"cell": asdict(one.coordinate), "reason": one.reason} for one in plan.skipped)
        keys = tuple(cell.key for cell in plan.cells)
        return cls(plan.grid.name, keys, tuple(range(plan.grid.folds)), tuple(range(plan.grid.repeats)), skipped)

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"type": "plan", "grid": self.grid}
        for name in ("cells", "folds", "repeats", "skipped"):
            facts[name] = list(getattr(self, name))
        return facts if self.at is None else facts | {"at": self.at}

    def trials(self) -> list[Trial]:
        return [Trial(fold, repeat) for fold in self.folds for repeat in self.repeats]


@dataclass(frozen=True)
class ProvenanceRecord:
    """The code, its packages and the kind of machine behind some trials."""

    id: str
    facts: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"type": "provenance", "id": self.id, **self.facts}


@dataclass(frozen=True)
class CellRecord:
    """A cell under its key."""

    key: str
    cell: Cell

    def to_json(self) -> dict[str, Any]:
        return {"type": "cell", "key": self.key, **self.cell.to_json()}


Record = CellRecord | TrialRecord | PlanRecord | ProvenanceRecord
_TRIAL_FIELDS = tuple(one.name for one in fields(TrialRecord))
RESULT = tuple(name for name in _TRIAL_FIELDS if name not in CIRCUMSTANCES)


def parse(raw: Any) -> Record:
    """The record that a line of JSON speaks of; raises `Flaw` with what is wrong with it."""
    if not isinstance(raw, dict):
        raise Flaw("no JSON object")
    kind = raw.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise Flaw(f"its type is {_short(kind)}")
    return reader(raw)


def _trial(raw: Mapping[str, Any]) -> TrialRecord:
    _demand(raw, _is_text, "cell")
    _demand(raw, STATUSES.__contains__, "status")
    _demand(raw, _is_count, "fold", "repeat")
    if raw["status"] == "done":
        _demand(raw, _is_share, "accuracy")
    _demand_if_there(raw, _is_share, *SCORES)
    _demand_if_there(raw, _is_number, "loss")
    _demand_if_there(raw, _is_count, "labels")
    _demand_if_there(raw, _are_amounts, "seconds")
    _demand_if_there(raw, _are_numbers, "generated")
    _demand_if_there(raw, _are_shares, "predicted")
    _demand_if_there(raw, _is_text, "reason", "engine", "handed_over", "provenance")
    _demand_if_there(raw, _is_time, "finished")
    _demand_if_there(raw, _is_curve, "curve")
    return TrialRecord(**{name: raw[name] for name in _TRIAL_FIELDS if raw.get(name) is not None})


def _plan(raw: Mapping[str, Any]) -> PlanRecord:
    _demand(raw, _is_text, "grid")
    _demand(raw, _list_of(_is_text), "cells")
    _demand(raw, _list_of(_is_count), "folds", "repeats")
    if len(raw["folds"]) * len(raw["repeats"]) > _MOST_TRIALS:
        raise _wrong(raw, "folds")
    _demand_if_there(raw, _list_of(_is_skip), "skipped")
    _demand_if_there(raw, _is_time, "at")
    lists = {name: tuple(raw.get(name) or ()) for name in ("cells", "folds", "repeats", "skipped")}
    return PlanRecord(grid=raw["grid"], at=raw.get("at"), **lists)


def _provenance(raw: Mapping[str, Any]) -> ProvenanceRecord:
    _demand(raw, _is_text, "id")
    return ProvenanceRecord(raw["id"], {name: value for name, value in raw.items() if name not in ("type", "id")})


def _cell(raw: Mapping[str, Any]) -> CellRecord:
    _demand(raw, _is_text, "key", "dataset", "features", "splits")
    _demand(raw, _is_budget, "k")
    if "learner" not in raw:
        raise Flaw("its cell was written by augbench 0.1, which knew no learners; `bench rekey` brings it up to date")
    _demand(raw, _is_choice, "learner", "augmenter")
    _demand_if_there(raw, _is_choice, "backbone", "readout")
    _demand(raw, _is_flat, "training", "versions")
    _demand_if_there(raw, _is_flag, "tuned")
    _demand_if_there(raw, _are_texts, "tuned_from")
    try:
        cell = Cell.from_json(raw)
    except (TypeError, UserError) as error:  # a training setting that is not known here
        raise Flaw(f"its cell was written by another version: {error}") from error
    if cell.key != raw["key"]:
        raise Flaw(f"its key is {_short(raw['key'])}, and what it says has the key {cell.key}")
    return CellRecord(raw["key"], cell)


_READERS: dict[str, Callable[[Mapping[str, Any]], Record]] = {
    "cell": _cell,
    "trial": _trial,
    "plan": _plan,
    "provenance": _provenance,
}


def _demand(raw: Mapping[str, Any], fits: Fits, *names: str) -> None:
    for name in names:
        if not fits(raw.get(name)):
            raise _wrong(raw, name)


def _demand_if_there(raw: Mapping[str, Any], fits: Fits, *names: str) -> None:
    for name in names:
        if raw.get(name) is not None and not fits(raw[name]):
            raise _wrong(raw, name)


def _wrong(raw: Mapping[str, Any], name: str) -> Flaw:
    return Flaw(f"its {name} is {_short(raw.get(name))}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _are_texts(value: Any) -> bool:
    return type(value) is dict and all(map(_is_text, value.values()))


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_budget(value: Any) -> bool:
    return _is_count(value) and value > 0


def _is_number(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _are_numbers(value: Any) -> bool:
    return type(value) is dict and all(map(_is_number, value.values()))


def _are_amounts(value: Any) -> bool:
    return _are_numbers(value) and all(number >= 0 for number in value.values())


def _are_shares(value: Any) -> bool:
    return type(value) is dict and all(map(_is_share, value.values()))


def _is_curve(value: Any) -> bool:
    """Pairs of an epoch and a loss; without a loop of ours, because every trial has one."""
    if type(value) is not list or not set(map(type, value)) <= {list} or not set(map(len, value)) <= {2}:
        return False
    numbers = [*chain.from_iterable(value)]
    return not numbers or (set(map(type, numbers)) <= {int, float} and -_HUGE < min(numbers) <= max(numbers) < _HUGE)


def _is_flat(value: Any) -> bool:
    """Settings and versions: names with plain values."""
    return type(value) is dict and all(
        item is None or type(item) in (bool, str) or _is_number(item) for item in value.values()
    )


def _is_choice(value: Any) -> bool:
    if type(value) is not dict or value.keys() != {"name", "settings", "label"}:
        return False
    return _is_text(value["name"]) and _is_text(value["label"]) and _is_flat(value["settings"])


def _is_skip(value: Any) -> bool:
    return type(value) is dict and _is_text(value.get("reason")) and type(value.get("cell")) in (dict, str)


def _list_of(fits: Fits) -> Fits:
    return lambda value: type(value) is list and all(map(fits, value))
