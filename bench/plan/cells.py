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

PARTS = ("learner", "augmenter", "backbone", "readout")  # the plug-ins of a cell


@dataclass(frozen=True, order=True)
class Trial:
    """One of a cell's repetitions: a fold and a repeat of the label draw."""

    fold: int
    repeat: int


@dataclass(frozen=True)
class Cell:
    """One number of a table, before it is measured. Two cells with the same key are the same experiment.

    Backbone and readout are None for a learner that is not built from them.
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
    tuned_from: Mapping[str, str] | None = None  # labels before tuning of what names its row in a table

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(f"k={self.k} is not a label budget; give one labeled graph per class or more")

    @cached_property
    def key(self) -> str:
        """A hash of all that decides the result: resolved settings, versions, and the labels that name the seeds."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def model(self) -> str:
        """What is trained, in words: backbone and readout, or the learner that needs neither."""
        return f"{self.backbone} {self.readout}" if self.backbone else str(self.learner)

    @property
    def label(self) -> str:
        """Short words for people: where, how many labels, what."""
        return f"{self.dataset} k={self.k} {self.augmenter} {self.model}"

    def part_label(self, part: str) -> str:
        """The label of one of its plug-ins; empty where the learner has no such part."""
        choice: Choice | None = getattr(self, part)
        return "" if choice is None else choice.label

    def to_json(self) -> dict[str, Any]:
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        for part in PARTS:
            facts[part] = None if facts[part] is None else _plain(facts[part])
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
        for part in PARTS:
            known[part] = None if known[part] is None else Choice(**known[part])
        return cls(**{**known, "training": Training(**known["training"])})


def _plain(choice: Choice) -> dict[str, Any]:
    return {"name": choice.name, "settings": dict(choice.settings), "label": choice.label}
