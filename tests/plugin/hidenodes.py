"""Hide the features of some nodes, other ones each epoch; the nodes themselves stay."""

from dataclasses import dataclass
from typing import Annotated

import torch

from augmenters import GraphAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class HideNodes(GraphAugmenter):
    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.2  # a setting: its default, bounds, and what to tune
    when = "epoch"

    def draw(self, graphs, rng, context):
        return [torch.from_numpy(rng.random(graph.num_nodes) >= self.p) for graph in graphs]

    def apply(self, graphs, drawn):
        new = [graph.clone() for graph in graphs]
        for graph, seen in zip(new, drawn, strict=True):
            graph.x = graph.x * seen.unsqueeze(1)
        return new
