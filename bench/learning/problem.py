"""What a learner is given (one trial's labeled graphs and its seeds, no test graph) and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, GraphAugmenter, SharedParts, label_distribution
from bench.protocol.training import Training
from bench.registry import Choice
from models.classifier import GraphClassifier, build_classifier


@dataclass(frozen=True)
class Problem:
    """One trial as a learner sees it. Its graphs are copies of its own: no other trial can see what is done to them.

    Backbone and readout are None for a learner that is not built from them.
    """

    graphs: Sequence[Data]
    num_classes: int
    augmenter: Augmenter
    training: Training
    init_seed: int
    augment_seed: int
    pretrain_seed: int
    shared_seed: Callable[[str], int]
    featurise: Callable[[Data], Data]
    backbone: Choice | None = None
    readout: Choice | None = None
    validation: Sequence[Data] = ()
    device: str = "cpu"
    shared: SharedParts = field(default_factory=SharedParts)  # what the methods of one trial have in common

    def fresh_model(self) -> GraphClassifier:
        """The classifier before its first step: the same weights for every augmenter."""
        if self.backbone is None or self.readout is None:
            raise ValueError("this problem names no backbone and readout, so it has no network to build")
        channels = self.graphs[0].num_node_features
        return build_classifier(self.backbone, self.readout, channels, self.num_classes, self.init_seed)


class Predictor(Protocol):
    """What is left when learning has ended."""

    def probabilities(self, graphs: Sequence[Data]) -> Tensor:
        """One row per graph; columns are classes."""


@dataclass(frozen=True)
class Fitted:
    """A predictor, and what was seen on the way to it."""

    predictor: Predictor
    loss: float | None = None  # on the training set, where the learner has one
    generated: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    curve: tuple[tuple[int, float], ...] = ()  # training loss at the epochs of `curve_epochs`
    engine: str | None = None  # the engine that ran, None for a learner that has none
    handed_over: str | None = None  # why the engine that was asked did not run it


class Engine(Protocol):
    """Trains the networks of some trials; a problem that fails gives its exception, so that the others go on."""

    name: str

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]: ...


@dataclass(frozen=True)
class Augmented:
    """The graphs of one step or of a whole training, with the label and the weight of each."""

    graphs: list[Data]
    targets: Tensor
    weights: Tensor
    generated: list[Data]

    def samples(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same with hard labels, for learners that know no others: places of graphs, classes, weights.

        A graph with a soft label is there once per class, weighted by its share.
        """
        places, classes = torch.nonzero(self.targets, as_tuple=True)
        return places, classes, self.targets[places, classes] * self.weights[places]


def curve_epochs(epochs: int) -> list[int]:
    """Some twenty epochs, dense at the start, at which the training loss is kept."""
    return sorted({round(epochs ** (i / 20)) for i in range(21)})


def label_rows(graphs: Sequence[Data], num_classes: int) -> Tensor:
    """The labels of some graphs as distributions, one row each."""
    return torch.cat([label_distribution(graph, num_classes) for graph in graphs])


def training_set(problem: Problem, generated: list[Data]) -> Augmented:
    """Originals and generated graphs as Eq. 16 weighs them; a method that replaces leaves the originals out."""
    augmenter = problem.augmenter
    replaces = isinstance(augmenter, GraphAugmenter) and augmenter.mode == "replace"
    originals = [] if replaces else list(problem.graphs)
    graphs = originals + generated
    weights = torch.ones(len(graphs))
    if not replaces:
        weights[len(originals) :] = augmenter.weight
    return Augmented(graphs, label_rows(graphs, problem.num_classes), weights, generated)
