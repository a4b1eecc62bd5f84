"""FLAG (Kong et al., CVPR 2022): perturbs features in each step by gradient ascent on the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, StepAugmenter, TrainingView
from bench.registry import Tune, Within


@dataclass(frozen=True)
class FLAG(StepAugmenter):
    """x + d with initial d ~ U(-size, size), then d + size sign(gradient), `ascents` times.

    The model learns from each perturbed graph with weight 1 / ascents; the optimizer steps once.
    """

    size: Annotated[float, Within(0, 100, above=True), Tune(0.001, 0.1, log=True)] = 0.01
    ascents: Annotated[int, Within(1, 100)] = 3

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        """The initial perturbation of each graph."""
        return [torch.from_numpy(rng.uniform(-self.size, self.size, graph.x.shape)).to(graph.x) for graph in graphs]

    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: list[Tensor]) -> None:
        shifts = drawn
        for _ in range(self.ascents):
            moved = [_shifted(graph, shift) for graph, shift in zip(graphs, shifts, strict=True)]
            gradients = view.learn(moved, share=1 / self.ascents)
            shifts = [shift + self.size * slope.sign() for shift, slope in zip(shifts, gradients, strict=True)]


def _shifted(graph: Data, shift: Tensor) -> Data:
    new = graph.clone()
    new.x = graph.x + shift
    return new
