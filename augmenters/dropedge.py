"""DropEdge (Rong et al., 2020): each undirected edge dropped with probability p, afresh each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, GraphAugmenter
from augmenters.functional import EdgeNumbers, number_edges, with_edges
from bench.registry import Tune, Within


@dataclass(frozen=True)
class DropEdge(GraphAugmenter):
    """Drop both directions of an edge together, always from the original graph."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    features: FeaturePolicy = "carry"
    when: ClassVar[Literal["epoch"]] = "epoch"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        """Which directed edges stay, one mask a graph."""
        edges = number_edges(graphs)
        return edges.split(self.draw_kept(edges, rng))

    def draw_kept(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """Which undirected edges stay: all the randomness, for who has numbered the edges before."""
        return rng.random(edges.total) >= self.p

    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        return [with_edges(graph, keep) for graph, keep in zip(graphs, drawn, strict=True)]
