"""Functions shared by the methods based on Gromov-Wasserstein geometry. They need POT: pip install 'augbench[ot]'."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.samplers import pairs_within

Note = Callable[..., None]


def pairs_of_small(graphs: Sequence[Data], count: int, most: int, rng: Generator, note: Note) -> list[tuple[int, int]]:
    """Pairs of graphs with at most `most` nodes; the others are left out and counted.

    If all graphs are larger, the smallest one is used, since it costs the least time.
    """
    sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
    small = np.flatnonzero(sizes <= most)
    if len(small) < len(sizes):
        note("left_out_too_large", len(sizes) - len(small))
    return pairs_within(small if len(small) else np.array([sizes.argmin()]), count, rng, note)


def uniform(n: int) -> np.ndarray:
    """Uniform masses on n nodes."""
    return np.full(n, 1 / n)


def node_features(graph: Data) -> np.ndarray:
    """Features in double precision; a column of ones if a graph has none."""
    return np.ones((int(graph.num_nodes or 0), 1)) if graph.x is None else graph.x.double().numpy()


def densest_pairs(strength: np.ndarray, density: float) -> np.ndarray:
    """The node pairs with the largest entries, as many as this share of all pairs, made symmetric."""
    n = len(strength)
    rows, columns = np.triu_indices(n, 1)
    count = min(round(density * len(rows)), len(rows))
    chosen = np.argsort(-strength[rows, columns], kind="stable")[:count]
    joined = np.zeros((n, n), dtype=bool)
    joined[rows[chosen], columns[chosen]] = joined[columns[chosen], rows[chosen]] = True
    return joined
