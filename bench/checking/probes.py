"""Augmenters that only record that they were called, one for each value of `when`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import (
    Augmenter,
    Context,
    EmbeddingAugmenter,
    GraphAugmenter,
    StepAugmenter,
    TrainingView,
    label_distribution,
)


class Probe(Augmenter):
    """Counts its draws."""

    calls = 0

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> int:
        self.calls += 1
        return context.num_classes


class Offline(Probe, GraphAugmenter):
    when: ClassVar[Literal["offline", "epoch", "batch"]] = "offline"

    def apply(self, graphs: Sequence[Data], drawn: int) -> list[Data]:
        return [graph.clone() for graph in graphs]


class SoftLabels(Offline):
    """Each graph again, with three quarters of its own label and a quarter of the next graph's."""

    mode: ClassVar[Literal["replace", "append"]] = "append"
    labels: ClassVar[Literal["kept", "mixed"]] = "mixed"
    weight = 0.5

    def apply(self, graphs: Sequence[Data], drawn: int) -> list[Data]:
        made = super().apply(graphs, drawn)
        for place, graph in enumerate(made):
            rows = [label_distribution(one, drawn) for one in (graphs[place], graphs[(place + 1) % len(graphs)])]
            graph.y = 0.75 * rows[0] + 0.25 * rows[1]
        return made


class EachEpoch(Offline):
    when: ClassVar[Literal["offline", "epoch", "batch"]] = "epoch"


class OnEmbeddings(Probe, EmbeddingAugmenter):
    def mix(self, embeddings: Tensor, targets: Tensor, drawn: Any) -> tuple[Tensor, Tensor]:
        return embeddings * 1, targets * 1


class InStep(Probe, StepAugmenter):
    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: Any) -> None:
        view.learn(graphs)


PROBES: dict[str, type[Probe]] = {
    "before training": Offline,
    "before training with mixed labels": SoftLabels,
    "each epoch": EachEpoch,
    "on embeddings": OnEmbeddings,
    "inside the step": InStep,
}
