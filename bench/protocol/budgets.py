"""The label budget: k graphs of each class, the same ones for every method, and nested in k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bench.protocol.seeds import TrialSeeds
from bench.registry import UserError
from bench.seeding import shuffled
from bench.warn_once import warn_once

Indices = npt.NDArray[np.int64]
HIDDEN = -1  # stands for the label of a graph that whoever draws must not know


def labelled_graphs(labels: npt.ArrayLike, train: Sequence[int] | Indices, k: int, seeds: TrialSeeds) -> Indices:
    """The graphs of the fold's train part whose labels may be used, class by class; the draw for k holds that for k-1.

    A class with fewer than k graphs gives all of them, and that is said once.
    """
    return _per_class(labels, train, k, seeds.labels, f"{seeds.dataset}, fold {seeds.fold}, train part")


def validation_budget(labels: npt.ArrayLike, validation: Sequence[int] | Indices, k: int, seeds: TrialSeeds) -> Indices:
    """The same budget for the validation part, for tuning that must not see more labels than training does."""
    return _per_class(labels, validation, k, seeds.validation, f"{seeds.dataset}, fold {seeds.fold}, validation part")


def _per_class(labels: npt.ArrayLike, part: Sequence[int] | Indices, k: int, seed: int, where: str) -> Indices:
    if k < 1:
        raise UserError(f"k={k} is not a label budget; give one labelled graph per class or more")
    every = np.asarray(labels)
    candidates = np.asarray(part, dtype=np.int64)
    drawn: list[int] = []
    for label in np.unique(every[every != HIDDEN]).tolist():
        members = candidates[every[candidates] == label].tolist()
        if len(members) < k:
            warn_once(f"{where}: class {label} has {len(members)} of the {k} graphs asked for; all of them are taken")
        drawn += shuffled(members, "class", seed, label)[:k]
    return np.array(drawn, dtype=np.int64)
