"""DropNode (You et al., 2020): a share p of the nodes removed with their edges, afresh each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, GraphAugmenter
from augmenters.functional import with_nodes
from bench.registry import Tune, Within


@dataclass(frozen=True)
class DropNode(GraphAugmenter):
    """Remove exactly int(p n) nodes, but never the last one; the rows leave `x`, so no readout counts them."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    features: FeaturePolicy = "carry"
    when: ClassVar[Literal["epoch"]] = "epoch"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[np.ndarray]:
        """The nodes that stay, one array a graph."""
        kept = []
        for graph in graphs:
            n = int(graph.num_nodes or 0)
            kept.append(rng.permutation(n)[: max(n - int(self.p * n), min(n, 1))])
        return kept

    def apply(self, graphs: Sequence[Data], drawn: list[np.ndarray]) -> list[Data]:
        return [with_nodes(graph, nodes) for graph, nodes in zip(graphs, drawn, strict=True)]
