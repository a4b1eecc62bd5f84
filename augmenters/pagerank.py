"""Personalized PageRank: the proximity of each node to a root, by diffusion over the edges."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from augmenters.functional import EdgeNumbers

RESTART, STEPS = 0.15, 10


def pagerank(matrix: sp.csr_array, roots: np.ndarray, restart: float = RESTART, steps: int = STEPS) -> np.ndarray:
    """Scores after `steps` iterations of p = restart e + (1 - restart) M p, for all graphs with one root each."""
    start = np.zeros(matrix.shape[0])
    start[roots] = 1.0
    scores = start
    for _ in range(steps):
        scores = restart * start + (1 - restart) * (matrix @ scores)
    return scores


def order_from_roots(graphs: EdgeNumbers, roots: np.ndarray, rng: Generator) -> np.ndarray:
    """All nodes, graph by graph: first the root, then its component by score, then the rest.

    Ties are broken at random.
    """
    scores = pagerank(graphs.propagation, roots)
    scores[roots] = np.inf
    near = graphs.components == graphs.components[roots][graphs.graph_of_node]
    return np.lexsort((rng.random(graphs.nodes), -scores, ~near, graphs.graph_of_node))
