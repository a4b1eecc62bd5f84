"""DropPath (Li et al., MaskGAE, KDD 2023): drops the edges of whole random walks, anew in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers
from augmenters.kinds import EdgeFactorAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class DropPath(EdgeFactorAugmenter):
    """Starts a walk of `length` steps at each node with probability p and drops the undirected edges it takes."""

    p: Annotated[float, Within(0, 1), Tune(0.02, 0.4)] = 0.15
    length: Annotated[int, Within(1, 100), Tune(1, 8)] = 3
    features: FeaturePolicy = "carry"

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """Which undirected edges are kept."""
        stays = np.ones(edges.total, dtype=bool)
        stays[walked_edges(edges, np.flatnonzero(rng.random(edges.nodes) < self.p), self.length, rng)] = False
        return stays


def walked_edges(edges: EdgeNumbers, starts: np.ndarray, length: int, rng: Generator) -> np.ndarray:
    """The numbers of the edges taken by random walks from these nodes, one walk per start; edges may repeat."""
    matrix = edges.numbered_adjacency
    degree = np.diff(matrix.indptr)
    at = starts[degree[starts] > 0]
    taken = []
    for _ in range(length):
        entry = matrix.indptr[at] + (rng.random(len(at)) * degree[at]).astype(np.int64)
        taken.append(matrix.data[entry] - 1)
        at = matrix.indices[entry]
    return np.concatenate(taken)
