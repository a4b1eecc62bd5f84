"""Ten folds: those of Errica et al. where their files are at hand, else our own; each with a validation part.

Test indices sit behind `Splits.test` alone. Who must not see them (a tuner) is given `DevelopmentSplits`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.datasets.paths import splits_folder
from bench.protocol.seeds import shuffled
from bench.registry import UserError, unknown
from bench.warn_once import warn_once

FOLDS = 10
STRATIFIED = "stratified"
# Errica et al. (2020): the first family is the default of a dataset.
PUBLISHED = {
    "PROTEINS": ("CHEMICAL",),
    "NCI1": ("CHEMICAL",),
    "DD": ("CHEMICAL",),
    "IMDB-BINARY": ("COLLABORATIVE_1", "COLLABORATIVE_DEGREE"),
    "IMDB-MULTI": ("COLLABORATIVE_1", "COLLABORATIVE_DEGREE"),
    "REDDIT-MULTI-5K": ("COLLABORATIVE_1", "COLLABORATIVE_DEGREE"),
}
_FILE_STEMS = {"PROTEINS": "PROTEINS_full"}  # same graphs, same order
SUFFIX = "_splits.json"
LARGEST_FILE = 2**26  # bytes; the largest published file has less than a hundredth of it

Indices = npt.NDArray[np.int64]


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


def split_file(root: Path, family: str, dataset: str) -> Path:
    """Where a dataset's split file of that family belongs."""
    return splits_folder(root, family) / f"{_FILE_STEMS.get(dataset, dataset)}{SUFFIX}"


def dataset_of_file(path: Path) -> str:
    """The dataset that a split file speaks of, by its name."""
    stem = path.name.removesuffix(SUFFIX)
    return next((name for name, other in _FILE_STEMS.items() if other == stem), stem)


def families_at_hand(dataset: str, root: Path) -> list[str]:
    """The split families whose file for this dataset is in the data root."""
    folders = sorted((root / "splits").glob("*")) if ":" not in dataset else []
    return [folder.name for folder in folders if split_file(root, folder.name, dataset).is_file()]


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
    """A file in Errica et al.'s layout, with everything checked; `size` None takes the file's own word for it."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
        outer = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a readable split file: {error}; fetch or import it again") from error
    try:
        parts = [
            (
                _indices(f["model_selection"][0]["train"]),
                _indices(f["model_selection"][0]["validation"]),
                _indices(f["test"]),
            )
            for f in outer
        ]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{path} is not in the layout of a split file ({type(error).__name__}: {error}); each of its {FOLDS} folds "
            'is {"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}'
        ) from error
    if len(parts) != FOLDS:
        raise UserError(f"{path} has {len(parts)} folds instead of {FOLDS}; fetch or import it again")
    count = sum(len(p) for p in parts[0]) if size is None else size
    for number, (train, validation, test) in enumerate(parts):
        problem = _problem(train, validation, test, count)
        if problem:
            raise UserError(f"{path}, fold {number}: {problem}; it does not belong to this {dataset} ({count} graphs)")
    if not np.array_equal(np.sort(np.concatenate([test for _, _, test in parts])), np.arange(count)):
        raise UserError(f"{path}: the test parts do not hold each of the {count} graphs of {dataset} exactly once")
    return _frozen(dataset, family, parts)


def _indices(values: Any) -> Indices:
    if not isinstance(values, list) or not all(type(v) is int for v in values):
        raise TypeError("a part is a list of whole numbers")
    return np.array(values, dtype=np.int64)


def _problem(train: Indices, validation: Indices, test: Indices, count: int) -> str | None:
    named = {"train": train, "validation": validation, "test": test}
    for name, part in named.items():
        if not len(part):
            return f"its {name} part is empty"
        if part.min() < 0 or part.max() >= count:
            return f"its {name} part has an index outside 0..{count - 1}"
        if len(np.unique(part)) != len(part):
            return f"its {name} part names a graph twice"
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        shared = np.intersect1d(named[one], named[other])
        if len(shared):
            return f"its {one} and {other} parts share {len(shared)} graphs"
    total = sum(len(part) for part in named.values())
    return None if total == count else f"its parts hold {total} of {count} graphs"


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
