"""What a learner gets (one trial's labeled graphs and seeds, but no test graphs) and what it returns."""

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
    """One trial as a learner sees it. Its graphs are its own copies, so modifying them affects no other trial.

    Backbone and readout are None for a learner without a network.
    """

    graphs: Sequence[Data]
    num_classes: int
    augmenter: Augmenter
    training: Training
    init_seed: int
    augment_seed: int
    pretrain_seed: int
    shared_seed: Callable[[str], int]
    featurize: Callable[[Data], Data]
    backbone: Choice | None = None
    readout: Choice | None = None
    validation: Sequence[Data] = ()
    device: str = "cpu"
    shared: SharedParts = field(default_factory=SharedParts)  # what the methods of one trial share

    @property
    def takes_mean(self) -> bool:
        """Whether the network's loss is a mean; a learner without a network weights graphs in its own way."""
        return self.training.loss == "mean" and self.backbone is not None

    def fresh_model(self) -> GraphClassifier:
        """The classifier before the first step: the same weights for every augmenter."""
        if self.backbone is None or self.readout is None:
            raise ValueError("this problem has no backbone and readout, so there is no network to build")
        channels = self.graphs[0].num_node_features
        ending = self.training.head
        return build_classifier(self.backbone, self.readout, channels, self.num_classes, self.init_seed, ending)


class Predictor(Protocol):
    """The result of learning."""

    def probabilities(self, graphs: Sequence[Data]) -> Tensor:
        """Class probabilities: one row per graph, one column per class."""


@dataclass(frozen=True)
class Fitted:
    """A predictor, and what was recorded during training."""

    predictor: Predictor
    loss: float | None = None  # on the training set, if the learner has a loss
    generated: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    curve: tuple[tuple[int, float], ...] = ()  # training loss at the epochs of `curve_epochs`
    engine: str | None = None  # the engine that ran; None for a learner without one
    handed_over: str | None = None  # why the requested engine did not run


class Engine(Protocol):
    """Trains the networks of some trials; a problem that fails returns its exception, so that the others continue."""

    name: str

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]:
        """One result per problem, or the exception that ended it."""


@dataclass(frozen=True)
class Augmented:
    """The graphs of one step or of a whole training, with their labels and weights."""

    graphs: list[Data]
    targets: Tensor
    weights: Tensor
    generated: list[Data]

    def part(self, places: Tensor) -> Augmented:
        """Some of the graphs, for one step; none of them counts as generated on its own."""
        return Augmented([self.graphs[i] for i in places.tolist()], self.targets[places], self.weights[places], [])

    def samples(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same with hard labels, for learners that require them: indices of graphs, classes, weights.

        A graph with a soft label occurs once per class, weighted by its share.
        """
        places, classes = torch.nonzero(self.targets, as_tuple=True)
        return places, classes, self.targets[places, classes] * self.weights[places]


def curve_epochs(epochs: int) -> list[int]:
    """About twenty epochs, denser at the start, at which the training loss is recorded."""
    return sorted({round(epochs ** (i / 20)) for i in range(21)})


def label_rows(graphs: Sequence[Data], num_classes: int) -> Tensor:
    """The labels of some graphs as distributions, one row each."""
    return torch.cat([label_distribution(graph, num_classes) for graph in graphs])


class MiniBatches:
    """Divides indices of graphs into shuffled steps in each epoch; all methods of a trial use the same shuffles.

    If all graphs fit into one step, they keep their own order.
    """

    def __init__(self, problem: Problem) -> None:
        self.size = problem.training.batch
        self._stream = generator(problem.shared_seed("mini-batches"))

    def cut(self, count: int) -> bool:
        """Whether so many graphs need more than one step."""
        return 0 < self.size < count

    def of(self, count: int) -> list[Tensor]:
        """The indices of each step of the next epoch, if there are several."""
        return list(torch.from_numpy(self._stream.permutation(count)).split(self.size))

    def split(self, data: Augmented) -> list[Augmented]:
        """The steps of the next epoch."""
        count = len(data.graphs)
        return [data.part(places) for places in self.of(count)] if self.cut(count) else [data]


def training_set(problem: Problem, generated: list[Data]) -> Augmented:
    """Originals and generated graphs weighted as in Eq. 16; a method with `mode=replace` leaves out the originals.

    With `loss=mean`, the two sums of Eq. 16 are means.
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
