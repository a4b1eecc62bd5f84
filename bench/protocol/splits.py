"""Ten folds: those of Errica et al. where their files are at hand, else our own; each with a validation part.

Test indices sit behind `Splits.test` alone. Who must not see them (a tuner) is given `DevelopmentSplits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.datasets.split_files import FOLDS, PUBLISHED, Indices, families_at_hand, read_folds, split_file
from bench.registry import UserError, unknown
from bench.seeding import shuffled
from bench.warn_once import warn_once

STRATIFIED = "stratified"


@dataclass(frozen=True)
class DevelopmentFold:
    """What may be seen before the end: the fold's train and validation parts."""

    train: Indices
    validation: Indices


@dataclass(frozen=True)
class DevelopmentSplits:
    """All folds without their test parts."""

    dataset: str
    family: str
    folds: tuple[DevelopmentFold, ...]

    def development(self, fold: int) -> DevelopmentFold:
        return self.folds[_checked_fold(fold, len(self.folds))]


@dataclass(frozen=True)
class Splits:
    """All folds of a dataset. `family` names their origin and stands in every result."""

    dataset: str
    family: str
    _development: tuple[DevelopmentFold, ...]
    _test: tuple[Indices, ...]

    @property
    def num_folds(self) -> int:
        return len(self._test)

    def development(self, fold: int) -> DevelopmentFold:
        """The fold's train and validation parts."""
        return self._development[_checked_fold(fold, self.num_folds)]

    def test(self, fold: int) -> Indices:
        """The fold's test part, for the one evaluation at the end."""
        return self._test[_checked_fold(fold, self.num_folds)]

    def without_test(self) -> DevelopmentSplits:
        """The same folds for code that must not reach a test index."""
        return DevelopmentSplits(self.dataset, self.family, self._development)


def _checked_fold(fold: int, count: int) -> int:
    if not 0 <= fold < count:
        raise UserError(f"fold {fold} does not exist; folds are 0 to {count - 1}")
    return fold


def resolve_splits(dataset: str, requested: str, root: Path) -> str:
    """The concrete split family: `auto` is the published default where its file is at hand, else our own folds."""
    if requested == STRATIFIED:
        return STRATIFIED
    at_hand = families_at_hand(dataset, root)
    published = PUBLISHED.get(dataset, ())
    if requested == "auto":
        return published[0] if published and published[0] in at_hand else STRATIFIED
    if requested in at_hand:
        return requested
    if requested in published:
        raise UserError(
            f"splits {requested} of {dataset} are not in {root}; run `bench data fetch {dataset}`, "
            "or `bench data import PATH` with the file, or ask for splits=stratified"
        )
    raise unknown(f"split family for {dataset}", requested, {*at_hand, *published, STRATIFIED, "auto"})


def load_splits(dataset: str, family: str, labels: npt.ArrayLike, root: Path) -> Splits:
    """The folds of a concrete family (see `resolve_splits`), checked against the dataset's labels."""
    values = np.asarray(labels)
    if family == STRATIFIED:
        return stratified_splits(dataset, values)
    path = split_file(root, family, dataset)
    if not path.is_file():
        resolve_splits(dataset, family, root)  # raises with the remedy
    return read_splits(path, dataset, family, len(values))


def read_splits(path: Path, dataset: str, family: str, size: int | None) -> Splits:
    """A file's folds; `size` None takes the file's own word for the number of graphs."""
    return _frozen(dataset, family, read_folds(path, dataset, size))


def stratified_splits(dataset: str, labels: npt.ArrayLike) -> Splits:
    """Our own ten folds: each class is dealt out evenly, in an order drawn by the dataset's name.

    A tenth of what is left beside the test part is for validation, again class by class.
    """
    values = np.asarray(labels)
    if len(values) < 2 * FOLDS:
        raise UserError(f"{dataset} has {len(values)} graphs; {FOLDS} folds need {2 * FOLDS} or more")
    rare = [int(c) for c, n in zip(*np.unique(values, return_counts=True), strict=True) if n < FOLDS]
    if rare:
        warn_once(f"{dataset}: classes {rare} have fewer than {FOLDS} graphs, so some test parts do not hold them")
    every = np.arange(len(values), dtype=np.int64)
    piles = _deal(every, values, dataset, "fold")
    parts = []
    for fold in range(FOLDS):
        rest = every[piles != fold]
        inner = _deal(rest, values, dataset, "validation", fold)
        members = np.bincount(values[rest])
        chosen = (inner == 0) & (members[values[rest]] > 1)  # the last graph of a class is worth more in training
        parts.append((rest[~chosen], rest[chosen], every[piles == fold]))
    return _frozen(dataset, STRATIFIED, parts)


def _deal(members: Indices, labels: npt.NDArray[Any], *names: str | int) -> Indices:
    """A pile from 0 to 9 for each member; class after class, like cards, so piles and classes are even."""
    order = [
        item
        for label in np.unique(labels[members]).tolist()
        for item in shuffled(members[labels[members] == label].tolist(), STRATIFIED, *names, label)
    ]
    pile_of = {item: position % FOLDS for position, item in enumerate(order)}
    return np.array([pile_of[item] for item in members.tolist()], dtype=np.int64)


def _frozen(dataset: str, family: str, parts: Sequence[tuple[Indices, Indices, Indices]]) -> Splits:
    for fold in parts:
        for part in fold:
            part.flags.writeable = False
    development = tuple(DevelopmentFold(train, validation) for train, validation, _ in parts)
    return Splits(dataset, family, development, tuple(test for _, _, test in parts))
