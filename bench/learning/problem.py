"""What an engine is given: one trial's labelled graphs and the seeds it may draw from. No test graph is in reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, GraphAugmenter, label_distribution
from bench.protocol.training import Training
from bench.registry import Choice
from models.classifier import GraphClassifier, build_classifier


@dataclass(frozen=True)
class Problem:
    """One trial as an engine sees it."""

    graphs: Sequence[Data]
    num_classes: int
    backbone: Choice
    readout: Choice
    augmenter: Augmenter
    training: Training
    init_seed: int
    augment_seed: int
    pretrain_seed: int
    shared_seed: Callable[[str], int]
    featurise: Callable[[Data], Data]
    validation: Sequence[Data] = ()
    device: str = "cpu"
    shared: dict[str, Any] = field(default_factory=dict)  # what the methods of one trial have in common

    def fresh_model(self) -> GraphClassifier:
        """The classifier before its first step: the same weights for every augmenter."""
        channels = self.graphs[0].num_node_features
        return build_classifier(self.backbone, self.readout, channels, self.num_classes, self.init_seed)


@dataclass(frozen=True)
class Augmented:
    """The graphs of one step or of a whole training, with the label and the weight of each."""

    graphs: list[Data]
    targets: Tensor
    weights: Tensor
    generated: list[Data]


@dataclass(frozen=True)
class Fitted:
    """A trained classifier and what was seen on the way."""

    model: GraphClassifier
    loss: float
    generated: dict[str, float]
    seconds: dict[str, float]
    curve: tuple[tuple[int, float], ...] = ()  # training loss at the epochs of `curve_epochs`
    engine: str = "reference"  # the engine that trained it
    handed_over: str | None = None  # why the fast engine did not, where it was asked to


def curve_epochs(epochs: int) -> list[int]:
    """Some twenty epochs, dense at the start, at which the training loss is kept."""
    return sorted({round(epochs ** (i / 20)) for i in range(21)})


class Engine(Protocol):
    """Trains trials of one cell; a problem that fails gives its exception, so that the others go on."""

    name: str

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]: ...


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
