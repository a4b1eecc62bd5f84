"""Subgraph (You et al., GraphCL, NeurIPS 2020): keeps the part of a graph that a random walk reaches, in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.sparse.csgraph import dijkstra

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers, first_in_each_graph, kept_sizes
from augmenters.kinds import KeptNodesAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class Subgraph(KeptNodesAugmenter):
    """Walks from a random node until all but int(p n) nodes are visited, and removes the others.

    The walk may continue from any visited node: each step takes a random edge to a new node. When a component is
    exhausted, it restarts at a random node of another one.
    """

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.2
    features: FeaturePolicy = "carry"

    def draw_kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The nodes that are kept, graph by graph."""
        return first_in_each_graph(graphs, walk_order(graphs, rng), kept_sizes(graphs.sizes, self.p))


def walk_order(graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
    """All nodes, graph by graph, in the order of their visits.

    Edges get exponential lengths, and nodes are visited by distance from the root. The exponential distribution is
    memoryless, so at every moment the next edge is uniform among those that lead to a new node.
    """
    numbered, first = graphs.numbered_adjacency, rng.random(graphs.nodes)
    lengths = rng.exponential(size=graphs.total) + np.finfo(float).tiny  # scipy treats a zero as a missing edge
    # The node with the lowest number of each component is its root; components are in the order of those numbers.
    by_number = np.lexsort((first, graphs.components))
    starts = np.flatnonzero(np.diff(graphs.components[by_number], prepend=-1))
    roots = by_number[starts]
    matrix = sp.csr_array((lengths[numbered.data - 1], numbered.indices, numbered.indptr), shape=numbered.shape)
    distance = dijkstra(matrix, directed=True, indices=roots, min_only=True)
    return np.lexsort((distance, first[roots][graphs.components], graphs.graph_of_node))
