"""SoftEdge (Guo et al., 2022): a random share of the edges get a weight from U(0, 1), afresh each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, GraphAugmenter
from augmenters.functional import undirected_edge_ids, with_weights
from bench.registry import Tune, Within


@dataclass(frozen=True)
class SoftEdge(GraphAugmenter):
    """One weight an undirected edge, for both directions; the pattern of the graph stays."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    when: ClassVar[Literal["epoch"]] = "epoch"
    weighted: ClassVar[bool] = True

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Tensor]:
        """The factor of each directed edge, one vector a graph."""
        factors = []
        for graph in graphs:
            ids, count = undirected_edge_ids(graph.edge_index)
            factor = np.ones(count, dtype=np.float32)
            chosen = rng.choice(count, size=round(self.p * count), replace=False) if count else np.empty(0, dtype=int)
            factor[chosen] = rng.random(chosen.size)
            factors.append(torch.from_numpy(factor)[ids])
        return factors

    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        return [with_weights(graph, factor) for graph, factor in zip(graphs, drawn, strict=True)]
