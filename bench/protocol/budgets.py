"""The label budget: k graphs of each class, the same ones for every method, nested in k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bench.protocol.seeds import TrialSeeds
from bench.registry import UserError
from bench.seeding import shuffled
from bench.warn_once import warn_once

Indices = npt.NDArray[np.int64]
HIDDEN = -1  # replaces the label of a graph where the label must not be known


def labeled_graphs(labels: npt.ArrayLike, train: Sequence[int] | Indices, k: int, seeds: TrialSeeds) -> Indices:
    """The graphs of the fold's training part whose labels may be used, by class; the draw for k contains that for k-1.

    A class with fewer than k graphs contributes all of them, with one warning.
    """
    return _per_class(labels, train, k, seeds.labels, f"{seeds.dataset}, fold {seeds.fold}, train part")


def validation_budget(labels: npt.ArrayLike, validation: Sequence[int] | Indices, k: int, seeds: TrialSeeds) -> Indices:
    """The same budget for the validation part, for tuning that must not use more labels than training does."""
    return _per_class(labels, validation, k, seeds.validation, f"{seeds.dataset}, fold {seeds.fold}, validation part")


def _per_class(labels: npt.ArrayLike, part: Sequence[int] | Indices, k: int, seed: int, where: str) -> Indices:
    if k < 1:
        raise UserError(f"k={k} is not a label budget; give at least one labeled graph per class")
    every = np.asarray(labels)
    candidates = np.asarray(part, dtype=np.int64)
    drawn: list[int] = []
    for label in np.unique(every[every != HIDDEN]).tolist():
        members = candidates[every[candidates] == label].tolist()
        if len(members) < k:
            warn_once(f"{where}: class {label} has {len(members)} of the {k} graphs requested; all of them are used")
        drawn += shuffled(members, "class", seed, label)[:k]
    return np.array(drawn, dtype=np.int64)
