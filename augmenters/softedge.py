"""SoftEdge (Guo et al., 2022): a random share of the edges get a weight from U(0, 1), afresh each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, GraphAugmenter
from augmenters.functional import EdgeNumbers, choose_within, number_edges, with_weights
from bench.registry import Tune, Within


@dataclass(frozen=True)
class SoftEdge(GraphAugmenter):
    """One weight an undirected edge, for both directions; the pattern of the graph stays."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    when: ClassVar[Literal["epoch"]] = "epoch"
    weighted: ClassVar[bool] = True

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        """The factor of each directed edge, one vector a graph."""
        edges = number_edges(graphs)
        return edges.split(self.draw_factors(edges, rng))

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The factor of each undirected edge: all the randomness, for who has numbered the edges before."""
        factor = np.ones(edges.total, dtype=np.float32)
        chosen = choose_within(edges.counts, np.rint(self.p * edges.counts).astype(np.int64), rng)
        factor[chosen] = rng.random(len(chosen), dtype=np.float32)
        return factor

    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        return [with_weights(graph, factor) for graph, factor in zip(graphs, drawn, strict=True)]
