"""A cell: everything that decides a number of a table, resolved; and the trials that stand behind it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from bench.protocol.training import Training
from bench.registry import Choice, UserError

TUNED_ON = {  # what the settings of a tuned cell were chosen on
    "nested": "settings chosen for each fold on its own training and validation graphs",
    "pooled": "settings chosen on all folds together: other folds' parts contain this fold's test graphs",
}
_TUNED_ONLY = ("tuned_from", "tuned_how", "by_fold")


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
    tuned_how: str | None = None  # a key of TUNED_ON
    by_fold: Mapping[str, Mapping[str, Any]] | None = None  # of a nested one: what each fold changes, see `at`

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

    def at(self, fold: int) -> Cell:
        """The cell as one fold trains it: with the fold's own plug-ins and training, where those were tuned by fold."""
        if self.by_fold is None:
            return self
        if str(fold) not in self.by_fold:
            raise UserError(f"'{self.label}' has no tuned settings for fold {fold}; run bench tune with more --folds")
        changes: dict[str, Any] = {
            part: Choice(**choice) for part, choice in self.by_fold[str(fold)].items() if part != "training"
        }
        training = replace(self.training, **self.by_fold[str(fold)].get("training", {}))
        return replace(self, **changes, training=training, by_fold=None)

    def to_json(self) -> dict[str, Any]:
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        for part in ("augmenter", "backbone", "readout"):
            choice: Choice = facts[part]
            facts[part] = {"name": choice.name, "settings": dict(choice.settings), "label": choice.label}
        facts["training"] = asdict(self.training)
        facts["versions"] = dict(self.versions)
        for name in _TUNED_ONLY:  # keys of cells that were not tuned know nothing of it
            if facts[name] is None:
                del facts[name]
        return facts

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Cell:
        """The cell that `to_json` wrote; other keys of a ledger line are passed over."""
        tuning = {"tuned": facts.get("tuned", False), **{name: facts.get(name) for name in _TUNED_ONLY}}
        known = {field.name: facts[field.name] for field in fields(cls) if field.name not in tuning} | tuning
        for part in ("augmenter", "backbone", "readout"):
            known[part] = Choice(**known[part])
        return cls(**{**known, "training": Training(**known["training"])})
