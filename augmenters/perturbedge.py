"""Edge perturbation (You et al., GraphCL, NeurIPS 2020): some edges exchanged for random ones, afresh each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, GraphAugmenter
from augmenters.functional import EdgeNumbers, choose_within
from augmenters.joined import JoinedGraphs, Rebuilt
from bench.registry import Tune, Within


@dataclass(frozen=True)
class PerturbEdge(GraphAugmenter):
    """A share p of the undirected edges goes, and as many pairs that were not joined are, so that their number stays.

    A graph that has fewer such pairs exchanges fewer edges: a complete graph stays complete. A new edge has the weight
    of the one that went.
    """

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.2
    features: FeaturePolicy = "recompute"
    when: ClassVar[Literal["epoch"]] = "epoch"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Rebuilt:
        joined = JoinedGraphs(graphs)
        edges, weight = joined.ends.copy(), joined.weights
        absent = joined.sizes * (joined.sizes - 1) // 2 - joined.counts + joined.loops
        swapped = np.minimum(np.rint(self.p * joined.counts).astype(np.int64), absent)
        edges[:, choose_within(joined.counts, swapped, rng)] = pairs_apart(joined, swapped, absent, rng)
        return joined.rebuilt(edges, weight)

    def apply(self, graphs: Sequence[Data], drawn: Rebuilt) -> list[Data]:
        return drawn.graphs(graphs)


def pairs_apart(graphs: EdgeNumbers, counts: np.ndarray, absent: np.ndarray, rng: Generator) -> np.ndarray:
    """For each graph that many different pairs of nodes that are not joined, graph after graph, shape [2, pairs].

    Pairs of a graph are numbered row by row above the diagonal. The r-th pair that is not joined is found among the
    numbers of those that are, so that no table of all pairs is needed.
    """
    found = []
    stops = np.cumsum(graphs.counts)
    for place in np.flatnonzero(counts):
        n, start = int(graphs.sizes[place]), graphs.starts[place]
        low, high = graphs.ends[:, stops[place] - graphs.counts[place] : stops[place]] - start
        taken = (low * (2 * n - low - 1) // 2 + high - low - 1)[low < high]
        ranks = rng.choice(absent[place], counts[place], replace=False)
        numbers = ranks + np.searchsorted(taken - np.arange(len(taken)), ranks, side="right")
        found.append(pairs_of_numbers(numbers, n) + start)
    return np.concatenate(found, axis=1) if found else np.empty((2, 0), dtype=np.int64)


def pairs_of_numbers(numbers: np.ndarray, n: int) -> np.ndarray:
    """The pairs of nodes with these numbers, row by row above the diagonal."""
    firsts = np.arange(n) * (2 * n - np.arange(n) - 1) // 2  # the number of each row's first pair
    low = np.searchsorted(firsts, numbers, side="right") - 1
    low = np.minimum(low, n - 2)  # the last row has no pair, and begins where the one before ends
    return np.stack([low, numbers - firsts[low] + low + 1])
