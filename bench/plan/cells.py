"""A cell: everything that decides a number of a table, resolved; and the trials that stand behind it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from bench.protocol.training import Training
from bench.registry import Choice, UserError


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
