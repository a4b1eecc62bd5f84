"""A cell: everything that determines a number of a table, resolved; and its trials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from bench.protocol.training import Training
from bench.registry import Choice, UserError

PARTS = ("learner", "augmenter", "backbone", "readout")  # the plug-ins of a cell
TUNED_ON = {  # what the settings of a tuned cell were chosen on
    "nested": "settings chosen for each fold on its own training and validation graphs",
    "pooled": "settings chosen on all folds together: other folds' parts contain this fold's test graphs",
}
_SELDOM = ("tuned_from", "tuned_how", "by_fold", "metric")  # omitted where empty, also from the key


@dataclass(frozen=True, order=True)
class Trial:
    """One repetition of a cell: a fold and a label draw."""

    fold: int
    repeat: int


@dataclass(frozen=True)
class Cell:
    """One number of a table, before it is measured. Cells with the same key are the same experiment.

    Backbone and readout are None for a learner without a network.
    """

    dataset: str
    features: str
    splits: str
    k: int
    learner: Choice
    augmenter: Choice
    backbone: Choice | None
    readout: Choice | None
    training: Training
    versions: Mapping[str, Any]
    tuned: bool = False
    tuned_from: Mapping[str, str] | None = None  # labels before tuning of the parts that name its row
    tuned_how: str | None = None  # a key of TUNED_ON
    metric: str | None = None  # the primary metric, if it is not accuracy
    by_fold: Mapping[str, Mapping[str, Any]] | None = None  # for nested tuning: what each fold changes, see `at`

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(f"k={self.k} is not a label budget; give at least one labeled graph per class")

    @cached_property
    def key(self) -> str:
        """A hash of everything that determines the result: resolved settings, versions, and the labels that seeds
        derive from.
        """
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def model(self) -> str:
        """What is trained, in words: backbone and readout, or a learner without them."""
        return f"{self.backbone} {self.readout}" if self.backbone else str(self.learner)

    @property
    def label(self) -> str:
        """A short description: dataset, number of labels, method."""
        return f"{self.dataset} k={self.k} {self.augmenter} {self.model}"

    def part_label(self, part: str) -> str:
        """The label of one of its plug-ins; empty if the learner has no such part."""
        choice: Choice | None = getattr(self, part)
        return "" if choice is None else choice.label

    def at(self, fold: int) -> Cell:
        """The cell as trained on one fold: with the fold's own plug-ins and training if those were tuned by fold."""
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
        for part in PARTS:
            facts[part] = None if facts[part] is None else _plain(facts[part])
        facts["training"] = asdict(self.training)
        facts["versions"] = dict(self.versions)
        for name in _SELDOM:
            if facts[name] is None:
                del facts[name]
        return facts

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Cell:
        """The inverse of `to_json`; other keys of a ledger line are ignored."""
        tuning = {"tuned": facts.get("tuned", False), **{name: facts.get(name) for name in _SELDOM}}
        known = {field.name: facts[field.name] for field in fields(cls) if field.name not in tuning} | tuning
        for part in PARTS:
            known[part] = None if known[part] is None else Choice(**known[part])
        return cls(**{**known, "training": Training(**known["training"])})


def _plain(choice: Choice) -> dict[str, Any]:
    return {"name": choice.name, "settings": dict(choice.settings), "label": choice.label}
