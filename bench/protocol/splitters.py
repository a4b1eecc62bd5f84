"""Computed folds: the base class of splitters, and the built-in ones.

A splitter sees the whole dataset, labels included, and always gives the same folds for the same data. Folds from files
and stratified folds are in `splits.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from bench.datasets import load_dataset
from bench.datasets.base import GraphSet
from bench.datasets.loading import own_folds
from bench.datasets.split_files import Indices, Parts, parts_problem
from bench.protocol.registries import SPLITTERS
from bench.registry import UserError, Within
from bench.seeding import shuffled


class Splitter(ABC):
    """Base class of all splitters. Constructor arguments with a default are settings: `holdout:test=0.2`."""

    @abstractmethod
    def folds(self, data: GraphSet, root: Path) -> Sequence[Parts]:
        """Training, validation and test part of each fold, as indices of the dataset's graphs."""


class Given(Splitter):
    """The folds that the dataset defines in `Dataset.folds`, such as a scaffold split."""

    def folds(self, data: GraphSet, root: Path) -> Sequence[Parts]:
        found = own_folds(data.name, root)
        if found is None:
            raise UserError(f"{data.name} has no folds of its own; leave out --splits given")
        return [_as_parts(fold) for fold in found]


class Holdout(Splitter):
    """One fold: each class is divided into test, validation and training parts; the dataset's name sets the order."""

    def __init__(
        self,
        test: Annotated[float, Within(0.01, 0.9)] = 0.1,
        validation: Annotated[float, Within(0.01, 0.9)] = 0.1,
    ) -> None:
        self.test, self.validation = test, validation

    def folds(self, data: GraphSet, root: Path) -> Sequence[Parts]:
        parts: list[list[int]] = [[], [], []]
        for label in np.unique(data.labels).tolist():
            members = np.flatnonzero(data.labels == label).tolist()
            order = shuffled(members, "holdout", data.name, label)
            tested = max(1, round(self.test * len(order)))
            validated = max(1, round(self.validation * len(order)))
            parts[2] += order[:tested]
            parts[1] += order[tested : tested + validated]
            parts[0] += order[tested + validated :]
        return [_as_parts([sorted(part) for part in parts])]


def is_splitter(family: str) -> bool:
    """Whether a split family is computed, not read from a file."""
    name = family.partition(":")[0]
    return name in SPLITTERS.entries() or ":" in family


def split_with(family: str, dataset: str, root: Path) -> list[Parts]:
    """The folds that a splitter computes for a dataset, checked like those of a file."""
    data = load_dataset(dataset, root)
    splitter: Splitter = SPLITTERS.create(family)
    parts = [_as_parts(fold) for fold in splitter.folds(data, root)]
    if not parts:
        raise UserError(f"{family} gives no fold for {dataset}; it must give at least one")
    for number, fold in enumerate(parts):
        problem = parts_problem(*fold, len(data.graphs), whole=False)
        if problem:
            raise UserError(f"{family}, fold {number} of {dataset}: {problem}; fix the splitter")
    return parts


def _as_parts(fold: Sequence[Sequence[int] | Indices]) -> Parts:
    train, validation, test = (np.array(part, dtype=np.int64) for part in fold)
    return train, validation, test
