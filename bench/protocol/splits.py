"""Folds: those of Errica et al. if their files are available, otherwise stratified ones; or a splitter's, or a file's.

Test indices are only accessible through `Splits.test`. Code that must not see them (a tuner) gets `DevelopmentSplits`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.datasets import cheap_info
from bench.datasets.notes import Stamp, settled, stamp_of
from bench.datasets.split_files import FOLDS, PUBLISHED, Indices, Parts, families_at_hand, read_folds, split_file
from bench.protocol.registries import SPLITTERS
from bench.protocol.splitters import is_splitter, split_with
from bench.registry import UserError, unknown
from bench.seeding import shuffled
from bench.warn_once import warn_once

STRATIFIED = "stratified"
STRATIFIED_VERSION = "stratified-1"  # raised when the same names and labels would give different folds


@dataclass(frozen=True)
class DevelopmentFold:
    """The part of a fold that may be used before evaluation: training and validation indices."""

    train: Indices
    validation: Indices


@dataclass(frozen=True)
class DevelopmentSplits:
    """All folds without their test parts."""

    dataset: str
    family: str
    folds: tuple[DevelopmentFold, ...]

    def development(self, fold: int) -> DevelopmentFold:
        """The training and validation parts of a fold."""
        return self.folds[_checked_fold(fold, len(self.folds))]


@dataclass(frozen=True)
class Splits:
    """All folds of a dataset. `family` names their origin, `fingerprint` their content; results contain both."""

    dataset: str
    family: str
    fingerprint: str
    _development: tuple[DevelopmentFold, ...]
    _test: tuple[Indices, ...]

    @property
    def num_folds(self) -> int:
        return len(self._test)

    def development(self, fold: int) -> DevelopmentFold:
        """The fold's training and validation parts."""
        return self._development[_checked_fold(fold, self.num_folds)]

    def test(self, fold: int) -> Indices:
        """The fold's test part, for the final evaluation."""
        return self._test[_checked_fold(fold, self.num_folds)]

    def without_test(self) -> DevelopmentSplits:
        """The same folds for code that must not access a test index."""
        return DevelopmentSplits(self.dataset, self.family, self._development)


def _checked_fold(fold: int, count: int) -> int:
    if not 0 <= fold < count:
        raise UserError(f"fold {fold} does not exist; folds are 0 to {count - 1}")
    return fold


def resolve_splits(dataset: str, requested: str, root: Path) -> str:
    """The split family to use.

    `auto` means the dataset's published default if its file is available. A dataset without one uses the single family
    that was imported for it; with several, the user has to choose. In all other cases, the folds are stratified.
    """
    if requested == STRATIFIED:
        return STRATIFIED
    if is_splitter(requested):
        return SPLITTERS.resolve(requested).label
    at_hand = families_at_hand(dataset, root)
    published = PUBLISHED.get(dataset, ())
    if requested == "auto":
        if published:
            return published[0] if published[0] in at_hand else STRATIFIED
        own = cheap_info(dataset, root).splits
        if own:
            return resolve_splits(dataset, own, root)
        if len(at_hand) > 1:
            raise UserError(
                f"{dataset} has {len(at_hand)} imported split families ({', '.join(at_hand)}); "
                f"name the one you mean with --splits, or --splits {STRATIFIED} for folds made here"
            )
        return at_hand[0] if at_hand else STRATIFIED
    if requested in at_hand:
        return requested
    if requested in published:
        raise UserError(
            f"splits {requested} of {dataset} are not in {root}; run `bench data fetch {dataset}`, "
            "or `bench data import PATH` with the file, or ask for splits=stratified"
        )
    raise unknown(
        f"split family for {dataset}", requested, {*at_hand, *published, STRATIFIED, "auto", *SPLITTERS.names()}
    )


def load_splits(dataset: str, family: str, labels: npt.ArrayLike, root: Path) -> Splits:
    """The folds of a family (see `resolve_splits`), checked against the dataset's labels."""
    values = np.asarray(labels)
    if family == STRATIFIED:
        return stratified_splits(dataset, values)
    if is_splitter(family):
        made = split_with(family, dataset, root)
        return _frozen(dataset, family, _fingerprint(made), made)
    path = split_file(root, family, dataset)
    if not path.is_file():
        resolve_splits(dataset, family, root)  # raises an error with the remedy
    return read_splits(path, dataset, family, len(values))


def count_folds(dataset: str, family: str, root: Path) -> int:
    """The number of folds of a family."""
    if family == STRATIFIED:
        return FOLDS
    if is_splitter(family):
        return len(split_with(family, dataset, root))
    return len(read_folds(split_file(root, family, dataset), dataset, None))


def splits_fingerprint(dataset: str, family: str, root: Path, labels: npt.ArrayLike | None = None) -> str:
    """A hash of the folds of a family, without loading the dataset; if labels are given, the folds are checked too.

    Stratified folds are determined by names and labels, so their version is enough: the labels are part of the data's
    fingerprint.
    """
    if family == STRATIFIED:
        return STRATIFIED_VERSION
    if is_splitter(family):
        return _fingerprint(split_with(family, dataset, root))
    path = split_file(root, family, dataset)
    size = None if labels is None else len(np.asarray(labels))
    try:
        stamp = stamp_of(path)
    except FileNotFoundError:
        resolve_splits(dataset, family, root)  # raises with the remedy
        raise
    if not settled(stamp, time.time_ns()):
        return _fingerprint(read_folds(path, dataset, size))
    return _known_fingerprint(path, stamp, dataset, size)


@lru_cache(maxsize=256)
def _known_fingerprint(path: Path, stamp: Stamp, dataset: str, size: int | None) -> str:
    """Cached until the file's size, times or inode change; `stamp` is only an argument for the cache."""
    return _fingerprint(read_folds(path, dataset, size))


def check_splits(splits: Splits, planned: str | None, root: Path) -> None:
    """Reject folds that differ from the plan's: a worker elsewhere may have a different file of the same name."""
    if planned is not None and splits.fingerprint != planned:
        raise UserError(
            f"splits {splits.family} of {splits.dataset} in {root} differ ({splits.fingerprint}) from the plan's "
            f"({planned}); import the same split file, or plan again with this one"
        )


def _fingerprint(parts: Sequence[Parts]) -> str:
    """A hash of the indices in their order, which determines the label draw; whitespace and other keys are ignored."""
    digest = hashlib.blake2b(digest_size=8)
    for fold in parts:
        for part in fold:
            digest.update(f"{len(part)} ".encode() + part.astype("<i8").tobytes())
    return digest.hexdigest()


def read_splits(path: Path, dataset: str, family: str, size: int | None) -> Splits:
    """The folds of a file; with `size` None, the number of graphs is inferred from the file."""
    parts = read_folds(path, dataset, size)
    return _frozen(dataset, family, _fingerprint(parts), parts)


def stratified_splits(dataset: str, labels: npt.ArrayLike) -> Splits:
    """Ten stratified folds: each class is distributed evenly, in an order determined by the dataset's name.

    A tenth of what remains beside the test part is used for validation, again by class.
    """
    values = np.asarray(labels)
    if len(values) < 2 * FOLDS:
        raise UserError(f"{dataset} has {len(values)} graphs; {FOLDS} folds need {2 * FOLDS} or more")
    rare = [int(c) for c, n in zip(*np.unique(values, return_counts=True), strict=True) if n < FOLDS]
    if rare:
        warn_once(f"{dataset}: classes {rare} have fewer than {FOLDS} graphs, so some test parts have none of them")
    every = np.arange(len(values), dtype=np.int64)
    piles = _deal(every, values, dataset, "fold")
    parts = []
    for fold in range(FOLDS):
        rest = every[piles != fold]
        inner = _deal(rest, values, dataset, "validation", fold)
        members = np.bincount(values[rest])
        chosen = (inner == 0) & (members[values[rest]] > 1)  # the last graph of a class is more useful for training
        parts.append((rest[~chosen], rest[chosen], every[piles == fold]))
    return _frozen(dataset, STRATIFIED, STRATIFIED_VERSION, parts)


def _deal(members: Indices, labels: npt.NDArray[Any], *names: str | int) -> Indices:
    """A fold number from 0 to 9 for each member, dealt like cards class by class, to balance folds and classes."""
    order = [
        item
        for label in np.unique(labels[members]).tolist()
        for item in shuffled(members[labels[members] == label].tolist(), STRATIFIED, *names, label)
    ]
    pile_of = {item: position % FOLDS for position, item in enumerate(order)}
    return np.array([pile_of[item] for item in members.tolist()], dtype=np.int64)


def _frozen(dataset: str, family: str, fingerprint: str, parts: Sequence[Parts]) -> Splits:
    for fold in parts:
        for part in fold:
            part.flags.writeable = False
    development = tuple(DevelopmentFold(train, validation) for train, validation, _ in parts)
    return Splits(dataset, family, fingerprint, development, tuple(test for _, _, test in parts))
