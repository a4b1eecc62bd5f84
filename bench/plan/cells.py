"""A cell: everything that decides a number of a table, resolved; and the trials that stand behind it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from bench.registry import Choice, Tune, UserError, Within, signature_settings, unknown

PROTOCOL = 1  # raised when the meaning of a trial changes, so that older numbers are never mixed in


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; a preset is a named set of these."""

    preset: str = "paper"
    epochs: Annotated[int, Within(1, 1_000_000)] = 800
    lr: Annotated[float, Within(0, 10, above=True), Tune(1e-3, 3e-2, log=True)] = 0.01
    weight_decay: Annotated[float, Within(0, 10), Tune(1e-6, 1e-2, log=True)] = 0.0
    select: Literal["last", "best-val"] = "last"

    def with_settings(self, changes: Mapping[str, Any]) -> Training:
        """A copy with some settings changed and checked; its preset's name says that it was changed."""
        offered = {key: s for key, s in signature_settings(Training).items() if key != "preset"}
        for key in changes:
            if key not in offered:
                raise unknown("training setting", key, offered)
        values: dict[str, Any] = {key: offered[key].check(value, "training") for key, value in changes.items()}
        return replace(self, **values)


PRESETS = {
    "paper": Training(),
    "quick": Training("quick", epochs=100),
}


def preset(name: str) -> Training:
    """The training settings of that name."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]


@dataclass(frozen=True, order=True)
class Trial:
    """One of a cell's repetitions: a fold and a repeat of the label draw."""

    fold: int
    repeat: int


@dataclass(frozen=True)
class Cell:
    """One number of a table, before it is measured. Two cells with the same key are the same experiment."""

    dataset: str
    features: str
    splits: str
    k: int
    augmenter: Choice
    backbone: Choice
    readout: Choice
    training: Training
    versions: Mapping[str, Any]
    tuned: bool = False
    tuned_from: Mapping[str, str] | None = None  # labels of augmenter and backbone before tuning: the row of a table

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(f"k={self.k} is not a label budget; give one labelled graph per class or more")

    @cached_property
    def key(self) -> str:
        """A hash of what decides the result, and of nothing else."""
        facts = self.to_json()
        for part in ("augmenter", "backbone", "readout"):
            del facts[part]["label"]
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """Short words for people: where, how many labels, what."""
        return f"{self.dataset} k={self.k} {self.augmenter} {self.backbone} {self.readout}"

    def to_json(self) -> dict[str, Any]:
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        for part in ("augmenter", "backbone", "readout"):
            choice: Choice = facts[part]
            facts[part] = {"name": choice.name, "settings": dict(choice.settings), "label": choice.label}
        facts["training"] = asdict(self.training)
        facts["versions"] = dict(self.versions)
        if self.tuned_from is None:  # keys of cells that were not tuned know nothing of it
            del facts["tuned_from"]
        else:
            facts["tuned_from"] = dict(self.tuned_from)
        return facts

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Cell:
        """The cell that `to_json` wrote; other keys of a ledger line are passed over."""
        known = {field.name: facts[field.name] for field in fields(cls) if not field.name.startswith("tuned")}
        known |= {"tuned": facts.get("tuned", False), "tuned_from": facts.get("tuned_from")}
        for part in ("augmenter", "backbone", "readout"):
            known[part] = Choice(**known[part])
        return cls(**{**known, "training": Training(**known["training"])})
