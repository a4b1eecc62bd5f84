"""Two methods on the hook for training steps: one that needs gradients, one that needs saliencies."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters import StepAugmenter, TrainingView
from augmenters.base import Context, label_distribution


@dataclass(frozen=True)
class Ascent(StepAugmenter):
    """Features perturbed against the model: a uniform start, sign-gradient steps, one optimizer step in all."""

    size: float = 0.01
    ascents: int = 3

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        return [torch.from_numpy(rng.uniform(-self.size, self.size, graph.x.shape)).to(graph.x) for graph in graphs]

    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: list[Tensor]) -> None:
        for _ in range(self.ascents):
            moved = [copy.copy(graph) for graph in graphs]
            for graph, shift in zip(moved, drawn, strict=True):
                graph.x = graph.x + shift
            gradients = view.learn(moved, share=1 / self.ascents)
            drawn = [shift + self.size * g.sign() for shift, g in zip(drawn, gradients, strict=True)]


@dataclass(frozen=True)
class Transplant(StepAugmenter):
    """The most salient part of one graph in the place of a random part of another; labels mixed by saliency."""

    part: float = 0.3
    labels = "mixed"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Generator:
        return np.random.default_rng(int(rng.integers(2**63)))

    def step(self, view: TrainingView, graphs: Sequence[Data], drawn: Generator) -> None:
        salient = [values / values.sum().clamp(min=1e-12) for values in view.saliency(graphs)]
        partners = drawn.permutation(len(graphs))
        pairs = [((graphs[i], salient[i]), (graphs[j], salient[j])) for i, j in enumerate(partners)]
        view.learn([self.graft(*pair, view.num_classes, drawn) for pair in pairs])

    def graft(self, host: Any, donor: Any, num_classes: int, rng: Generator) -> Data:
        (host, kept_by), (donor, given_by) = host, donor
        given = given_by.topk(math.ceil(self.part * donor.num_nodes)).indices
        kept = torch.from_numpy(rng.permutation(host.num_nodes)[: max(1, round((1 - self.part) * host.num_nodes))])
        parts = [host.subgraph(kept.sort().values), donor.subgraph(given.sort().values)]
        start = parts[0].num_nodes
        bridge = torch.tensor([[rng.integers(start)], [start + rng.integers(parts[1].num_nodes)]])
        edges = [parts[0].edge_index, parts[1].edge_index + start, bridge, bridge.flip(0)]
        share = float(given_by[given].sum() / (given_by[given].sum() + kept_by[kept].sum()).clamp(min=1e-12))
        labels = [label_distribution(graph, num_classes) for graph in (host, donor)]
        new = Data(x=torch.cat([part.x for part in parts]), edge_index=torch.cat(edges, dim=1))
        new.y = (1 - share) * labels[0] + share * labels[1]
        if host.get("edge_weight") is not None:
            new.edge_weight = torch.cat([parts[0].edge_weight, parts[1].edge_weight, torch.ones(2)])
        return new
