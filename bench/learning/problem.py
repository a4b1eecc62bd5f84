"""What a learner is given (one trial's labeled graphs and its seeds, no test graph) and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, GraphAugmenter, SharedParts, generator, label_distribution
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

    @property
    def takes_mean(self) -> bool:
        """Whether the loss of its network is a mean; a learner without one weighs graphs in its own way."""
        return self.training.loss == "mean" and self.backbone is not None

    def fresh_model(self) -> GraphClassifier:
        """The classifier before its first step: the same weights for every augmenter."""
        if self.backbone is None or self.readout is None:
            raise ValueError("this problem names no backbone and readout, so it has no network to build")
        channels = self.graphs[0].num_node_features
        ending = self.training.head
        return build_classifier(self.backbone, self.readout, channels, self.num_classes, self.init_seed, ending)


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

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]:
        """One result per problem, or the exception that ended it."""


@dataclass(frozen=True)
class Augmented:
    """The graphs of one step or of a whole training, with the label and the weight of each."""

    graphs: list[Data]
    targets: Tensor
    weights: Tensor
    generated: list[Data]

    def part(self, places: Tensor) -> Augmented:
        """Some of the graphs, for one step; none of them counts as generated for itself."""
        return Augmented([self.graphs[i] for i in places.tolist()], self.targets[places], self.weights[places], [])

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


class MiniBatches:
    """Shuffles places of graphs into steps, afresh each epoch; all methods of a trial see the same shuffles.

    As many graphs as fit into one step are one step, in their own order.
    """

    def __init__(self, problem: Problem) -> None:
        self.size = problem.training.batch
        self._stream = generator(problem.shared_seed("mini-batches"))

    def cut(self, count: int) -> bool:
        """Whether so many graphs are more than one step."""
        return 0 < self.size < count

    def of(self, count: int) -> list[Tensor]:
        """The places of each step of the next epoch, where there are several."""
        return list(torch.from_numpy(self._stream.permutation(count)).split(self.size))

    def split(self, data: Augmented) -> list[Augmented]:
        """The steps of the next epoch."""
        count = len(data.graphs)
        return [data.part(places) for places in self.of(count)] if self.cut(count) else [data]


def training_set(problem: Problem, generated: list[Data]) -> Augmented:
    """Originals and generated graphs as Eq. 16 weighs them; a method that replaces leaves the originals out.

    With `loss=mean` the two sums of Eq. 16 are means.
    """
    augmenter = problem.augmenter
    replaces = isinstance(augmenter, GraphAugmenter) and augmenter.mode == "replace"
    originals = [] if replaces else list(problem.graphs)
    graphs = originals + generated
    weights = torch.ones(len(graphs))
    if not replaces:
        weights[len(originals) :] = augmenter.weight
    if problem.takes_mean:
        weights[: len(originals)] /= max(1, len(originals))
        weights[len(originals) :] /= max(1, len(generated))
    return Augmented(graphs, label_rows(graphs, problem.num_classes), weights, generated)
