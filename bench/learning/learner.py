"""What every learner is: it takes a problem, and gives back a predictor."""

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

TOLERANCE = 1e-3  # of the sum of a row of probabilities


class Learner(ABC):
    """Base of all learners. Arguments of the constructor that have a default are the settings a user may write.

    `network`: whether it is built from a backbone and a readout. Such a learner is given `engine`, which trains them;
    a learner of another kind is given nothing.
    `trained`: whether it takes steps as the cell's training says (epochs, learning rate), so that a search of settings
    includes these.
    """

    network: ClassVar[bool] = False
    trained: ClassVar[bool] = False

    @classmethod
    def refuses(
        cls, augmenter: type[Augmenter], backbone: type[Backbone] | None = None, readout: type[Readout] | None = None
    ) -> str | None:
        """Why this learner makes no sense with this augmenter, None if it does.

        Most learners see all their graphs at once, so they take what is made before training and nothing else.
        """
        if issubclass(augmenter, GraphAugmenter) and getattr(augmenter, "when", None) == "offline":
            return None
        return (
            f"{augmenter.__name__} works during training, and {cls.__name__} takes graphs that are made before it; "
            "use an offline augmenter, or the learner gnn"
        )

    @abstractmethod
    def fit(self, problem: Problem) -> Fitted:
        """Learn from the labeled graphs, with the problem's augmenter and seeds."""


def create_learner(choice: str | Choice, engine: Engine) -> Learner:
    """The learner of a cell; `engine` trains the network of one that has a network."""
    resolved = LEARNERS.resolve(choice)
    cls: type[Learner] = LEARNERS.load(resolved.name)
    given = {"engine": engine} if cls.network else {}
    learner: Learner = LEARNERS.create(resolved, **given)
    return learner


def predictions(predictor: Predictor, graphs: Sequence[Data], num_classes: int) -> Tensor:
    """What a predictor says of graphs; it is given copies without their labels, and its answer is checked."""
    rows = predictor.probabilities([unlabeled(graph) for graph in graphs])
    wrong = not_distributions(rows, len(graphs), num_classes)
    if wrong:
        raise ValueError(wrong)
    return rows


def not_distributions(rows: Tensor, count: int, num_classes: int) -> str | None:
    """What is wrong with the probabilities of so many graphs, if anything."""
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
