"""Edge perturbation (You et al., GraphCL, NeurIPS 2020): replaces some edges with random ones, anew in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers, choose_within
from augmenters.joined import JoinedGraphs, Rebuilt
from augmenters.kinds import NewEdgesAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class PerturbEdge(NewEdgesAugmenter):
    """Replaces a share p of the undirected edges with random unconnected pairs; the number of edges does not change.

    A graph with too few unconnected pairs replaces fewer edges: a complete graph stays complete. A new edge gets the
    weight of the one it replaces.
    """

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.2
    features: FeaturePolicy = "recompute"

    def draw_edges(self, graphs: JoinedGraphs, rng: Generator) -> Rebuilt:
        edges = graphs.ends.copy()
        absent = graphs.sizes * (graphs.sizes - 1) // 2 - graphs.counts + graphs.loops
        swapped = np.minimum(np.rint(self.p * graphs.counts).astype(np.int64), absent)
        edges[:, choose_within(graphs.counts, swapped, rng)] = pairs_apart(graphs, swapped, absent, rng)
        return graphs.rebuilt(edges, graphs.weights)


def pairs_apart(graphs: EdgeNumbers, counts: np.ndarray, absent: np.ndarray, rng: Generator) -> np.ndarray:
    """For each graph, that many distinct unconnected pairs of nodes, graph by graph, shape [2, pairs].

    The pairs of a graph are numbered row by row above the diagonal. The r-th unconnected pair is found from the numbers
    of the connected ones, so no table of all pairs is needed.
    """
    if not counts.any():
        return np.empty((2, 0), dtype=np.int64)
    drawn = zip(absent.tolist(), counts.tolist(), strict=True)
    ranks = np.concatenate([rng.choice(most, count, replace=False) for most, count in drawn if count])
    graph = np.repeat(np.arange(len(counts)), counts)
    # All graphs on one line: each has its own range for pair numbers and for ranks.
    n = graphs.sizes
    stretch = np.cumsum(n * n) - n * n
    owner, (low, high) = (
        np.repeat(np.arange(len(n)), graphs.counts),
        graphs.ends - np.repeat(graphs.starts, graphs.counts),
    )
    apart = low < high
    low, high, owner = low[apart], high[apart], owner[apart]
    taken = low * (2 * n[owner] - low - 1) // 2 + high - low - 1
    joined = graphs.counts - graphs.loops
    first = np.cumsum(joined) - joined  # the position of each graph's first connected pair
    before = taken - (np.arange(len(taken)) - first[owner]) + stretch[owner]
    ranks += np.searchsorted(before, ranks + stretch[graph], side="right") - first[graph]
    return pairs_of_numbers(ranks, n[graph]) + graphs.starts[graph]


def pairs_of_numbers(numbers: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """The pairs with these numbers, row by row above the diagonal, each in a graph with so many nodes."""
    # Counted from the last pair, rows have 1, 2, 3, ... pairs: triangular numbers, whose square roots are exact enough.
    back = n * (n - 1) // 2 - 1 - numbers
    row = ((np.sqrt(8.0 * back + 1) - 1) / 2).astype(np.int64)
    row -= row * (row + 1) // 2 > back
    row += (row + 1) * (row + 2) // 2 <= back
    return np.stack([n - 2 - row, n - 1 - (back - row * (row + 1) // 2)])
