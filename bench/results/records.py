"""What a line of a ledger must say for those who read it: a ledger or a published file may come from anywhere.

Standard library only, because the command line reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

_CELL = ("key", "dataset", "features", "splits")
_PARTS = ("augmenter", "backbone", "readout")
_PART_FIELDS = {"name", "settings", "label"}
_METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "loss", "labels")
_HUGE = 1e300
_MOST_TRIALS = 100_000  # of one plan and cell; a short line could ask for billions


def flaw(record: Any) -> str | None:
    """What is wrong with a record, in words; nothing for one that can be used."""
    if not isinstance(record, dict):
        return "no JSON object"
    kind = record.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return f"its type is {_short(kind)}"
    name = check(record)
    return None if name is None else f"its {name} is {_short(record.get(name))}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _cell(record: Mapping[str, Any]) -> str | None:
    for name in _CELL:
        if type(record.get(name)) is not str:
            return name
    if type(record.get("k")) is not int or not 0 < record["k"] < 2**31:
        return "k"
    for part in _PARTS:
        if not _is_part(record.get(part)):
            return part
    for group in ("training", "versions"):
        if not _is_flat(record.get(group)):
            return group
    base = record.get("tuned_from")
    if base is not None and not (_is_flat(base) and all(type(label) is str for label in base.values())):
        return "tuned_from"
    if record.get("tuned_how") not in (None, "nested", "pooled"):
        return "tuned_how"
    if record.get("by_fold") is not None and not _is_by_fold(record["by_fold"]):
        return "by_fold"
    return None if type(record.get("tuned", False)) is bool else "tuned"


def _is_part(choice: Any) -> bool:
    if type(choice) is not dict or choice.keys() != _PART_FIELDS or not _is_flat(choice["settings"]):
        return False
    return type(choice["name"]) is str and type(choice["label"]) is str


def _is_by_fold(value: Any) -> bool:
    """By the number of a fold: the plug-ins it changes, and the settings of training."""
    return type(value) is dict and all(
        fold.isdecimal()
        and type(changes) is dict
        and changes.keys() <= {*_PARTS, "training"}
        and all(_is_flat(held) if part == "training" else _is_part(held) for part, held in changes.items())
        for fold, changes in value.items()
    )


def _trial(record: Mapping[str, Any]) -> str | None:
    for name in ("cell", "status"):
        if type(record.get(name)) is not str:
            return name
    for name in ("fold", "repeat"):
        if not _is_count(record.get(name)):
            return name
    if record["status"] == "done" and not _is_number(record.get("accuracy")):
        return "accuracy"
    for name in _METRICS:
        if not (record.get(name) is None or _is_number(record[name])):
            return name
    for name in ("seconds", "generated"):
        group = record.get(name)
        if group is not None and not (type(group) is dict and all(map(_is_number, group.values()))):
            return name
    for name in ("reason", "finished", "provenance"):
        if not (record.get(name) is None or type(record[name]) is str):
            return name
    return None if record.get("curve") is None or _is_curve(record["curve"]) else "curve"


def _plan(record: Mapping[str, Any]) -> str | None:
    if type(record.get("grid")) is not str:
        return "grid"
    for name, fits in (("cells", _is_text), ("folds", _is_count), ("repeats", _is_count)):
        if type(record.get(name)) is not list or not all(map(fits, record[name])):
            return name
    if len(record["folds"]) * len(record["repeats"]) > _MOST_TRIALS:
        return "folds"
    skipped = record.get("skipped")
    return None if skipped is None or (type(skipped) is list and all(map(_is_skip, skipped))) else "skipped"


def _provenance(record: Mapping[str, Any]) -> str | None:
    return None if type(record.get("id")) is str else "id"


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _is_number(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or (type(value) is int and abs(value) < 2**63)


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


def _is_skip(value: Any) -> bool:
    return type(value) is dict and type(value.get("reason")) is str and type(value.get("cell")) in (dict, str)


_CHECKS = {"cell": _cell, "trial": _trial, "plan": _plan, "provenance": _provenance}
