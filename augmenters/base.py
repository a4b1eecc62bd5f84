"""Base classes of all augmenters: random draws in one method, their application in another, inputs never modified."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from augmenters.inputs import check_call
from bench.registry import Scalar, UserError, signature_settings

T = TypeVar("T")
FeaturePolicy = Literal["carry", "recompute"]


class SharedParts:
    """Values that are computed once. Both what is stored and what is returned are copies, so callers cannot affect each
    other.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def fetch(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value stored under `key`, computing it first if needed; the key must name everything the value
        depends on.
        """
        if key not in self._kept:
            self._kept[key] = copy.deepcopy(make())
        value: T = copy.deepcopy(self._kept[key])
        return value


@dataclass
class Context:
    """What an augmenter may know about the training it serves; created automatically in standalone use.

    `classify` trains a classifier on labeled graphs for some epochs and returns its class probabilities, one row per
    graph. `share` stores what several methods of one class have in common within a trial: the function that computes it
    gets a random stream that depends only on the trial and the key, so every method gets the same value. The key must
    name the settings that the value depends on; the graphs are added to it automatically.
    """

    num_classes: int
    classify: Callable[[Sequence[Data], int], Tensor]
    stream: Callable[[str], Generator]
    keep: Callable[[str, Callable[[], Any]], Any] = field(default_factory=lambda: SharedParts().fetch)
    notes: dict[str, float] = field(default_factory=dict)

    def share(self, key: str, make: Callable[[Generator], T]) -> T:
        """Return a copy of what `make` computes; it is computed only once."""
        value: T = self.keep(key, lambda: make(self.stream(key)))
        return value

    def note(self, name: str, amount: float = 1.0) -> None:
        """Count a noteworthy event, such as a fallback; the harness stores the counts with the trial."""
        self.notes[name] = self.notes.get(name, 0.0) + amount

    @classmethod
    def standalone(cls, graphs: Sequence[Data], rng: Generator) -> Context:
        """A context for use outside the harness: a default GCN as the classifier, random streams spawned from `rng`."""
        from models.fit import pretrain

        num_classes = count_classes(graphs)

        def classify(chosen: Sequence[Data], epochs: int) -> Tensor:
            return pretrain(chosen, num_classes, epochs=epochs, seed=int(rng.integers(2**63))).probabilities

        return cls(num_classes, classify, lambda key: rng.spawn(1)[0])


class Augmenter(ABC):
    """Base class of all augmenters. Subclasses are dataclasses whose fields are the settings.

    `when`: once before training (`offline`), in each epoch (`epoch`), or inside the training step (`batch`). `mode`:
    whether the new graphs are added to the originals (`append`) or replace them (`replace`). `weighted`: whether it
    generates edge weights, which requires a backbone that reads them. `identity`: settings under which it changes
    nothing; `bench check` verifies this. A setting `p` is assumed to do nothing at 0.
    """

    when: ClassVar[Literal["offline", "epoch", "batch"]]
    mode: ClassVar[Literal["replace", "append"]] = "replace"
    labels: ClassVar[Literal["kept", "mixed"]] = "kept"
    weighted: ClassVar[bool] = False
    identity: ClassVar[Mapping[str, Scalar] | None] = None
    features: FeaturePolicy = "carry"
    weight: float = 1.0  # lambda: the loss weight of a generated graph; an original has 1

    def __post_init__(self) -> None:
        """Validate the settings, so that mistakes are reported in standalone use too."""
        for name, setting in signature_settings(type(self)).items():
            setting.check(getattr(self, name), type(self).__name__)

    @abstractmethod
    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Any:
        """Make all random decisions for these graphs, using only `rng`."""

    def as_transform(self, seed: int = 0) -> BaseTransform:
        """A PyG transform (a callable on one graph); only for methods that map each graph to one graph and keep its
        label.
        """
        from augmenters.transforms import as_transform

        return as_transform(self, seed)


class GraphAugmenter(Augmenter):
    """An augmenter that generates graphs: `augmenter(graphs, rng)`."""

    @abstractmethod
    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        """Return the new graphs, deterministically. Inputs are not modified, and outputs share no memory with them."""

    def __call__(self, graphs: Sequence[Data], rng: Generator, context: Context | None = None) -> list[Data]:
        """New graphs from these and a stream; in somebody's own loop without a context."""
        if context is None:
            check_call(type(self).__name__, graphs, rng)
            context = Context.standalone(graphs, rng)
        return self.apply(graphs, self.draw(graphs, rng, context))


class EmbeddingAugmenter(Augmenter):
    """An augmenter that acts between the readout and the head, on one embedding per graph."""

    when: ClassVar[Literal["offline", "epoch", "batch"]] = "batch"

    @abstractmethod
    def mix(self, embeddings: Tensor, targets: Tensor, drawn: Any) -> tuple[Tensor, Tensor]:
        """The new embeddings and targets (class distributions) of one step."""


class TrainingView(Protocol):
    """A step augmenter's view of the training step. It can only reach the graphs that it is given.

    `embeddings`, `losses`, `saliency` and `feature_gradients` evaluate the current model without dropout and without
    side effects; results are per graph, in the order of the graphs. `learn` performs the step itself.
    """

    num_classes: int

    def embeddings(self, graphs: Sequence[Data]) -> list[Tensor]:
        """Node embeddings after the last layer, of shape nodes x width."""

    def losses(self, graphs: Sequence[Data]) -> Tensor:
        """The loss of each graph."""

    def saliency(self, graphs: Sequence[Data]) -> list[Tensor]:
        """For each node, the norm of the loss gradient with respect to its embedding after the last layer."""

    def feature_gradients(self, graphs: Sequence[Data]) -> list[Tensor]:
        """The gradient of the loss with respect to the node features, of shape nodes x features."""

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[Tensor]:
        """Add the gradients of `share` times the loss of these graphs to those of the step.

        Returns the same as `feature_gradients` without an extra pass, but with the dropout of this pass. A step may
        call this several times; the optimizer steps once, at the end.
        """


class StepAugmenter(Augmenter):
    """An augmenter that acts inside each training step and may query the model, for example for gradients.

    In each step, `draw` is called for all randomness (it may return a generator created from `rng`). Then `step`
    generates graphs and passes them to `view.learn`, once or several times. Labels are read from the graphs' `y`.
    """

    when: ClassVar[Literal["offline", "epoch", "batch"]] = "batch"

    @abstractmethod
    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: Any) -> None:
        """Perform one step on the trial's labeled graphs without modifying them; all randomness is in `drawn`."""


def count_classes(graphs: Sequence[Data]) -> int:
    """The number of classes in the labels of these graphs; unlabeled graphs do not count."""
    labels = [graph.y for graph in graphs if graph.y is not None]
    return max((y.view(1, -1).shape[1] if y.is_floating_point() else int(y.max()) + 1 for y in labels), default=0)


def label_distribution(graph: Data, num_classes: int) -> Tensor:
    """The label of a graph as class probabilities of shape [1, num_classes]; soft labels are returned unchanged."""
    if graph.y is None:
        raise UserError("a graph has no label, and this method mixes labels; give each graph its class in `y`")
    if graph.y.is_floating_point():
        return graph.y.view(1, num_classes)
    return torch.nn.functional.one_hot(graph.y.view(1), num_classes).to(torch.float32)


def generator(seed: int) -> Generator:
    """The random generator that augmenters draw from."""
    return np.random.default_rng(seed)
