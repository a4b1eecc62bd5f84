"""The interface of learners: a learner gets a problem and returns a predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, GraphAugmenter
from bench.learning import LEARNERS
from bench.learning.isolation import unlabeled
from bench.learning.problem import Engine, Fitted, Predictor, Problem
from bench.registry import Choice
from models.backbones import Backbone
from models.readouts import Readout

__all__ = ["Fitted", "Learner", "Predictor", "Problem", "create_learner", "predictions"]

TOLERANCE = 1e-3  # for the sum of a row of probabilities


class Learner(ABC):
    """Base class of all learners. Constructor arguments with a default are settings.

    `network`: whether it is built from a backbone and a readout. Such a learner gets an `engine`, which trains them;
    other learners get none. `trained`: whether it is trained as the cell specifies (epochs, learning rate), so that
    `bench tune` includes these settings.
    """

    network: ClassVar[bool] = False
    trained: ClassVar[bool] = False

    @classmethod
    def refuses(
        cls, augmenter: type[Augmenter], backbone: type[Backbone] | None = None, readout: type[Readout] | None = None
    ) -> str | None:
        """Why this learner cannot be combined with this augmenter; None if it can.

        Most learners see all their graphs at once, so they only accept augmentation before training.
        """
        if issubclass(augmenter, GraphAugmenter) and augmenter.when == "offline":
            return None
        return (
            f"{augmenter.__name__} works during training, and {cls.__name__} takes graphs that are made before it; "
            "use an offline augmenter, or the learner gnn"
        )

    @abstractmethod
    def fit(self, problem: Problem) -> Fitted:
        """Learn from the labeled graphs, using the problem's augmenter and seeds."""


def create_learner(choice: str | Choice, engine: Engine) -> Learner:
    """The learner of a cell; `engine` trains learners that have a network."""
    resolved = LEARNERS.resolve(choice)
    cls: type[Learner] = LEARNERS.load(resolved.name)
    given = {"engine": engine} if cls.network else {}
    learner: Learner = LEARNERS.create(resolved, **given)
    return learner


def predictions(predictor: Predictor, graphs: Sequence[Data], num_classes: int) -> Tensor:
    """A predictor's output for graphs, validated; the predictor gets copies without labels."""
    rows = predictor.probabilities([unlabeled(graph) for graph in graphs])
    wrong = not_distributions(rows, len(graphs), num_classes)
    if wrong:
        raise ValueError(wrong)
    return rows


def not_distributions(rows: Tensor, count: int, num_classes: int) -> str | None:
    """What is wrong with these class probabilities, if anything."""
    if rows.shape != (count, num_classes):
        return (
            f"probabilities has shape {list(rows.shape)} for {count} graphs and {num_classes} classes; "
            "return one row per graph and one column per class"
        )
    wrong = ~rows.isfinite().all(dim=1) | (rows < 0).any(dim=1) | ((rows.sum(dim=1) - 1).abs() > TOLERANCE)
    if bool(wrong.any()):
        row = int(torch.nonzero(wrong)[0])
        return f"the probabilities of graph {row} are {rows[row].tolist()}; they must be a distribution"
    return None
