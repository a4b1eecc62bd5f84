"""DropNode (You et al., 2020): a share p of the nodes removed with their edges, afresh each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, GraphAugmenter
from augmenters.functional import choose_within, with_nodes
from bench.registry import Tune, Within


@dataclass(frozen=True)
class DropNode(GraphAugmenter):
    """Remove exactly int(p n) nodes, but never the last one; the rows leave `x`, so no readout counts them."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    features: FeaturePolicy = "carry"
    when: ClassVar[Literal["epoch"]] = "epoch"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[np.ndarray]:
        """The nodes that stay, one array a graph."""
        sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
        ends, starts = np.cumsum(self.kept_counts(sizes)), np.cumsum(sizes) - sizes
        kept = np.split(self.draw_kept(sizes, rng), ends[:-1])
        return [nodes - start for nodes, start in zip(kept, starts, strict=True)]

    def kept_counts(self, sizes: np.ndarray) -> np.ndarray:
        """How many nodes stay in graphs of these sizes."""
        return np.maximum(sizes - (self.p * sizes).astype(np.int64), np.minimum(sizes, 1))

    def draw_kept(self, sizes: np.ndarray, rng: Generator) -> np.ndarray:
        """The nodes that stay, graph after graph, nodes numbered through: all the randomness."""
        return choose_within(sizes, self.kept_counts(sizes), rng)

    def apply(self, graphs: Sequence[Data], drawn: list[np.ndarray]) -> list[Data]:
        return [with_nodes(graph, nodes) for graph, nodes in zip(graphs, drawn, strict=True)]
