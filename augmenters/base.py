"""What every augmenter is: randomness drawn in one method, applied in another, the input never changed."""

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
    """Values that are made once. What is kept and what is handed out are copies: nobody can change another's."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def fetch(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value under a key, which names all that it depends on; made if it is not there yet."""
        if key not in self._kept:
            self._kept[key] = copy.deepcopy(make())
        value: T = copy.deepcopy(self._kept[key])
        return value


@dataclass
class Context:
    """What an augmenter may know of the training it serves; made on the spot when it is used on its own.

    `classify` trains a classifier on labeled graphs for some epochs and returns its class probabilities on them, one
    row per graph. `share` keeps what several methods of one class have in common within a trial: its maker gets a
    random stream that depends on the trial and the key alone, so a shared value is the same number for everyone. The
    key names the settings that it depends on; the graphs are part of it by themselves.
    """

    num_classes: int
    classify: Callable[[Sequence[Data], int], Tensor]
    stream: Callable[[str], Generator]
    keep: Callable[[str, Callable[[], Any]], Any] = field(default_factory=lambda: SharedParts().fetch)
    notes: dict[str, float] = field(default_factory=dict)

    def share(self, key: str, make: Callable[[Generator], T]) -> T:
        """What `make` gives, made once; a copy of it."""
        value: T = self.keep(key, lambda: make(self.stream(key)))
        return value

    def note(self, name: str, amount: float = 1.0) -> None:
        """Count something worth reporting (a fallback, say); the harness writes it beside the trial."""
        self.notes[name] = self.notes.get(name, 0.0) + amount

    @classmethod
    def standalone(cls, graphs: Sequence[Data], rng: Generator) -> Context:
        """A context for somebody's own loop: a default GCN as classifier, streams spawned from `rng`."""
        from models.fit import pretrain

        num_classes = count_classes(graphs)

        def classify(chosen: Sequence[Data], epochs: int) -> Tensor:
            return pretrain(chosen, num_classes, epochs=epochs, seed=int(rng.integers(2**63))).probabilities

        return cls(num_classes, classify, lambda key: rng.spawn(1)[0])


class Augmenter(ABC):
    """Base of all augmenters. Subclasses are dataclasses: their fields are the settings a user may write.

    `when`: once before training (offline), afresh each epoch (epoch), or inside the step (batch).
    `mode`: whether the result stands beside the originals (append) or in their place (replace).
    `weighted`: whether it makes edge weights, so that only a backbone that reads them may follow.
    `identity`: the settings at which it changes nothing, which `bench check` holds it to; a setting `p` is known by
    itself to do nothing at 0.
    """

    when: ClassVar[Literal["offline", "epoch", "batch"]]
    mode: ClassVar[Literal["replace", "append"]] = "replace"
    labels: ClassVar[Literal["kept", "mixed"]] = "kept"
    weighted: ClassVar[bool] = False
    identity: ClassVar[Mapping[str, Scalar] | None] = None
    features: FeaturePolicy = "carry"
    weight: float = 1.0  # lambda: how much a generated graph counts in the loss beside an original

    def __post_init__(self) -> None:
        """Check the settings, so that a mistake in somebody's own loop is told as on the command line."""
        for name, setting in signature_settings(type(self)).items():
            setting.check(getattr(self, name), type(self).__name__)

    @abstractmethod
    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Any:
        """Every random decision for these graphs, from `rng` alone."""

    def as_transform(self, seed: int = 0) -> BaseTransform:
        """A PyG transform, a callable on one graph; only for methods that make one graph of each and keep its label."""
        from augmenters.transforms import as_transform

        return as_transform(self, seed)


class GraphAugmenter(Augmenter):
    """An augmenter that makes graphs: `augmenter(graphs, rng)`."""

    @abstractmethod
    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        """The new graphs; deterministic. The input stays as it is, and the new graphs share no memory with it."""

    def __call__(self, graphs: Sequence[Data], rng: Generator, context: Context | None = None) -> list[Data]:
        """New graphs from these and a stream; in somebody's own loop without a context."""
        if context is None:
            check_call(type(self).__name__, graphs, rng)
            context = Context.standalone(graphs, rng)
        return self.apply(graphs, self.draw(graphs, rng, context))


class EmbeddingAugmenter(Augmenter):
    """An augmenter that acts between the readout and the head, on one row per graph."""

    when: ClassVar[Literal["offline", "epoch", "batch"]] = "batch"

    @abstractmethod
    def mix(self, embeddings: Tensor, targets: Tensor, drawn: Any) -> tuple[Tensor, Tensor]:
        """New embeddings and targets (distributions over classes) of one step."""


class TrainingView(Protocol):
    """What a step augmenter may see and do of the training in one step. No other graph than those it is given exists.

    `embeddings`, `losses`, `saliency` and `feature_gradients` look at the model as it is now, without dropout, and
    change nothing; each answers per graph, in the order of the graphs. `learn` is the step itself.
    """

    num_classes: int

    def embeddings(self, graphs: Sequence[Data]) -> list[Tensor]:
        """Node embeddings after the last layer, nodes x width."""

    def losses(self, graphs: Sequence[Data]) -> Tensor:
        """The loss of each graph's label."""

    def saliency(self, graphs: Sequence[Data]) -> list[Tensor]:
        """For each node the length of the loss gradient at its embedding after the last layer."""

    def feature_gradients(self, graphs: Sequence[Data]) -> list[Tensor]:
        """The gradient of the loss at the node features, nodes x features."""

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[Tensor]:
        """Add the gradients of `share` times the loss of these graphs to those of the step.

        Returns what `feature_gradients` does, at no extra pass, but with the dropout of this pass. A step may learn
        several times; the optimizer moves once, when the step has ended.
        """


class StepAugmenter(Augmenter):
    """An augmenter that acts inside each training step and may look at the model: at saliencies, say, or gradients.

    In each step `draw` is called for everything random (it may return a generator made from `rng`), then `step`, which
    makes graphs and gives them to `view.learn`, once or several times. Labels are read from the graphs' `y`.
    """

    when: ClassVar[Literal["offline", "epoch", "batch"]] = "batch"

    @abstractmethod
    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: Any) -> None:
        """One step on the trial's labeled graphs, which stay as they are; all randomness is in `drawn`."""


def count_classes(graphs: Sequence[Data]) -> int:
    """The number of classes that labels of these graphs speak of; graphs without a label speak of none."""
    labels = [graph.y for graph in graphs if graph.y is not None]
    return max((y.view(1, -1).shape[1] if y.is_floating_point() else int(y.max()) + 1 for y in labels), default=0)


def label_distribution(graph: Data, num_classes: int) -> Tensor:
    """A graph's label as a row of class probabilities, shape [1, num_classes]; soft labels pass through."""
    if graph.y is None:
        raise UserError("a graph has no label, and this method mixes labels; give each graph its class in `y`")
    if graph.y.is_floating_point():
        return graph.y.view(1, num_classes)
    return torch.nn.functional.one_hot(graph.y.view(1), num_classes).to(torch.float32)


def generator(seed: int) -> Generator:
    """The one kind of random stream that augmenters draw from."""
    return np.random.default_rng(seed)
