"""The records of a ledger, typed, with one validator.

A ledger or published file may come from anywhere, so every record goes through `parse`. Only the standard library is
used: the command line reads ledgers without importing torch or pandas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, Literal

from bench.plan.cells import PARTS, TUNED_ON, Cell, Trial
from bench.protocol.training import Training
from bench.registry import Setting, UserError, signature_settings

if TYPE_CHECKING:  # it reads datasets, but records can be read without them
    from bench.plan.planner import Plan

Fits = Callable[[Any], bool]
Status = Literal["done", "failed", "diverged"]
STATUSES: tuple[Status, ...] = ("done", "failed", "diverged")
SCORES = ("accuracy", "balanced_accuracy", "macro_f1")  # fractions of one
CIRCUMSTANCES = ("seconds", "finished", "provenance")  # circumstances of a measurement; everything else is its result
_MOST = 2**31  # for anything that is counted
_MOST_TRIALS = 100_000  # of one plan and cell; a short line could ask for billions


class Flaw(ValueError):
    """Why a record cannot be used, in words that follow "it is not a record: "."""


@dataclass(slots=True)
class TrialRecord:
    """One trial that was tried: its scores, or why it has none."""

    cell: str
    fold: int
    repeat: int
    status: Status
    reason: str | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    loss: float | None = None
    labels: int | None = None  # number of labeled graphs that it was trained on
    engine: str | None = None  # engine and kind of device that ran it: "fast/cpu"
    handed_over: str | None = None  # why the requested engine did not run it
    predicted: dict[str, float] = field(default_factory=dict)  # share of the test graphs assigned to each class
    seconds: dict[str, float] = field(default_factory=dict)
    generated: dict[str, float] = field(default_factory=dict)
    curve: list[list[float]] = field(default_factory=list)  # pairs of epoch and training loss
    finished: str | None = None
    provenance: str | None = None
    scores: dict[str, float] = field(default_factory=dict)  # additional metrics requested by the cell, by name

    @property
    def trial(self) -> Trial:
        return Trial(self.fold, self.repeat)

    def score(self, metric: str | None) -> float | None:
        """The value of a metric; by default, accuracy."""
        name = metric or SCORES[0]
        return getattr(self, name) if name in SCORES else self.scores.get(name)

    @property
    def done(self) -> bool:
        return self.status == "done"

    def to_json(self) -> dict[str, Any]:
        """The ledger's line, without empty fields."""
        facts: dict[str, Any] = {"type": "trial"}
        for name in _TRIAL_FIELDS:
            value = getattr(self, name)
            if value is not None and not (type(value) in (dict, list) and not value):
                facts[name] = value
        return facts


@dataclass(frozen=True)
class PlanRecord:
    """The plan of a run."""

    grid: str
    cells: tuple[str, ...]
    folds: tuple[int, ...]
    repeats: tuple[int, ...]
    skipped: tuple[Mapping[str, Any], ...] = ()  # cells of the grid that could not run: {"cell": ..., "reason": ...}
    at: str | None = None

    @classmethod
    def of(cls, plan: Plan) -> PlanRecord:
        """The record of a plan, without the time."""
        skipped = tuple({"cell": one.coordinate.to_json(), "reason": one.reason} for one in plan.skipped)
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
    """The code, its packages and the type of machine behind some trials."""

    id: str
    facts: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"type": "provenance", "id": self.id, **self.facts}


@dataclass(frozen=True)
class CellRecord:
    """A cell and its key."""

    key: str
    cell: Cell

    def to_json(self) -> dict[str, Any]:
        return {"type": "cell", "key": self.key, **self.cell.to_json()}


Record = CellRecord | TrialRecord | PlanRecord | ProvenanceRecord
_TRIAL_FIELDS = tuple(one.name for one in fields(TrialRecord))
_NEEDED = frozenset({"cell", "fold", "repeat", "status"})
_GROUPS = frozenset({"predicted", "scores", "seconds", "generated"})
_SHARED = frozenset({"cell", "status", "provenance", "engine"})  # words that occur in all trials
RESULT = tuple(name for name in _TRIAL_FIELDS if name not in CIRCUMSTANCES)


def parse(raw: Any) -> Record:
    """The record of a line of JSON; raises `Flaw` if it is invalid."""
    if not isinstance(raw, dict):
        raise Flaw("no JSON object")
    kind = raw.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise Flaw(f"its type is {_short(kind)}")
    return reader(raw)


def _trial(raw: Mapping[str, Any]) -> TrialRecord:
    """Checks each field only once: a ledger may have a million trials."""
    values: list[Any] = []
    for name, fits in _TRIAL_FITS:
        value = raw.get(name)
        if value is None:
            if name in _NEEDED:
                raise _wrong(raw, name)
            value = {} if name in _GROUPS else [] if name == "curve" else None
        elif not fits(value):
            raise _wrong(raw, name)
        elif name in _SHARED:
            value = intern(value)
        values.append(value)
    record = TrialRecord(*values)
    if record.accuracy is None and record.done:
        raise _wrong(raw, "accuracy")
    return record


def _plan(raw: Mapping[str, Any]) -> PlanRecord:
    _demand(raw, _is_text, "grid")
    _demand(raw, _list_of(_is_text), "cells")
    _demand(raw, _list_of(_is_count), "folds", "repeats")
    if len(raw["folds"]) * len(raw["repeats"]) > _MOST_TRIALS:
        raise Flaw(f"its folds and repeats are {len(raw['folds'])} times {len(raw['repeats'])} trials of each cell")
    _demand_if_there(raw, _list_of(_is_skip), "skipped")
    _demand_if_there(raw, _is_time, "at")
    lists = {name: tuple(raw.get(name) or ()) for name in ("cells", "folds", "repeats", "skipped")}
    return PlanRecord(grid=raw["grid"], at=raw.get("at"), **lists)


def _provenance(raw: Mapping[str, Any]) -> ProvenanceRecord:
    _demand(raw, _is_text, "id")
    facts = {name: value for name, value in raw.items() if name not in ("type", "id")}
    _demand(facts, _is_json, *facts)
    return ProvenanceRecord(raw["id"], facts)


def _cell(raw: Mapping[str, Any]) -> CellRecord:
    _demand(raw, _is_text, "key", "dataset", "features", "splits")
    _demand(raw, _is_budget, "k")
    if "learner" not in raw:
        raise Flaw("its cell was written by augbench 0.1, which knew no learners; `bench rekey` brings it up to date")
    _demand(raw, _is_choice, "learner", "augmenter")
    _demand_if_there(raw, _is_choice, "backbone", "readout")
    if (raw.get("backbone") is None) != (raw.get("readout") is None):
        raise Flaw("it has one of backbone and readout, which only make a network together")
    _demand(raw, _is_flat, "training", "versions")
    _demand_training(raw["training"])
    _demand_if_there(raw, _is_flag, "tuned")
    _demand_if_there(raw, _are_texts, "tuned_from")
    _demand_if_there(raw, TUNED_ON.__contains__, "tuned_how")
    _demand_if_there(raw, _is_by_fold, "by_fold")
    _demand_if_there(raw, _is_text, "metric")
    cell = Cell.from_json({"backbone": None, "readout": None, **raw})
    if cell.key != raw["key"]:
        raise Flaw(f"its key is {_short(raw['key'])}, and what it says has the key {cell.key}")
    return CellRecord(raw["key"], cell)


def _demand_training(values: Mapping[str, Any]) -> None:
    """Check that all training settings have valid values; other versions may have had other settings."""
    offered = _offered()
    for name in values.keys() | offered.keys():
        if name not in offered:
            raise Flaw(f"its training has the setting {_short(name)}, so its cell was written by another version")
        if name not in values or not _admits(offered[name], values[name]):
            raise Flaw(f"its training.{name} is {_short(values.get(name))}")


@lru_cache(maxsize=1)
def _offered() -> dict[str, Setting]:
    return signature_settings(Training)


def _admits(setting: Setting, value: Any) -> bool:
    """Whether it is a value itself, not text that a user could write for it."""
    if type(value) is not setting.type and not (setting.type is float and type(value) is int):
        return False
    try:
        return setting.check(value, "") == value
    except UserError:
        return False


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
    shown = name if name.isprintable() else _short(name)
    return Flaw(f"its {shown} is {_short(raw.get(name))}")


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
    return type(value) is int and 0 <= value < _MOST


def _is_budget(value: Any) -> bool:
    return _is_count(value) and value > 0


def _is_share(value: Any) -> bool:
    return type(value) in (float, int) and 0 <= value <= 1


def _is_number(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


def _are_numbers(value: Any) -> bool:
    return type(value) is dict and all(map(_is_number, value.values()))


def _are_amounts(value: Any) -> bool:
    return _are_numbers(value) and min(value.values(), default=0) >= 0


def _are_shares(value: Any) -> bool:
    return type(value) is dict and all(map(_is_share, value.values()))


def _is_curve(value: Any) -> bool:
    """Pairs of epoch and loss; checked without a Python loop, because every trial has one."""
    if not value:
        return type(value) is list
    try:
        epochs, losses = zip(*value, strict=True)
        whole = sum(epochs)  # the sums exist only for numbers, are integers if all are, and finite if all are
        return type(whole) is int and min(epochs) >= 0 and whole < 2**63 and math.isfinite(sum(losses))
    except (TypeError, ValueError, OverflowError):
        return False


def _is_json(value: Any) -> bool:
    """Any JSON value."""
    if type(value) is dict:
        return all(map(_is_text, value)) and all(map(_is_json, value.values()))
    if type(value) is list:
        return all(map(_is_json, value))
    return value is None or type(value) in (bool, str) or _is_number(value)


def _is_flat(value: Any) -> bool:
    """Settings and versions: names with simple values."""
    return type(value) is dict and all(
        item is None or type(item) in (bool, str) or _is_number(item) for item in value.values()
    )


def _is_choice(value: Any) -> bool:
    if type(value) is not dict or value.keys() != {"name", "settings", "label"}:
        return False
    return _is_text(value["name"]) and _is_text(value["label"]) and _is_flat(value["settings"])


def _is_by_fold(value: Any) -> bool:
    """By fold: the changed plug-ins, and the training settings."""
    return type(value) is dict and all(
        fold.isdecimal()
        and type(changes) is dict
        and changes.keys() <= {*PARTS, "training"}
        and all(_is_flat(held) if part == "training" else _is_choice(held) for part, held in changes.items())
        for fold, changes in value.items()
    )


def _is_skip(value: Any) -> bool:
    if type(value) is not dict or not _is_text(value.get("reason")) or type(value.get("cell")) not in (dict, str):
        return False
    return _is_json(value)


_ALL: dict[str, Fits] = {
    "cell": _is_text,
    "fold": _is_count,
    "repeat": _is_count,
    "status": STATUSES.__contains__,
    "reason": _is_text,
    "accuracy": _is_share,
    "balanced_accuracy": _is_share,
    "macro_f1": _is_share,
    "loss": _is_number,
    "labels": _is_count,
    "engine": _is_text,
    "handed_over": _is_text,
    "predicted": _are_shares,
    "scores": _are_shares,
    "seconds": _are_amounts,
    "generated": _are_numbers,
    "curve": _is_curve,
    "finished": _is_time,
    "provenance": _is_text,
}
_TRIAL_FITS = tuple((name, _ALL[name]) for name in _TRIAL_FIELDS)


def _list_of(fits: Fits) -> Fits:
    return lambda value: type(value) is list and all(map(fits, value))
