"""Distances between the node features of two sets of graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import wasserstein_distance
from torch_geometric.data import Data


def feature_rows(graph: Data) -> np.ndarray:
    """A graph's node features; an empty table if it has none."""
    n = int(graph.num_nodes or 0)
    return np.zeros((n, 0)) if graph.x is None else np.asarray(graph.x.detach().numpy(), dtype=np.float64)


def feature_distance(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float | None:
    """Wasserstein-1 distance of each feature's values, averaged over features; every graph has the same weight.

    None if there are no features or if their number differs.
    """
    widths = {rows.shape[1] for rows in (*first, *second)}
    if len(widths) != 1 or 0 in widths:
        return None
    (values, weights), (others, other_weights) = (_weighted(tables) for tables in (first, second))
    return float(
        np.mean([wasserstein_distance(a, b, weights, other_weights) for a, b in zip(values.T, others.T, strict=True)])
    )


def new_rows(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> float | None:
    """The share of the second set's nodes whose feature row does not occur in the first set."""
    if len({rows.shape[1] for rows in (*first, *second)}) != 1 or not first[0].shape[1]:
        return None
    known = {row.tobytes() for rows in first for row in np.ascontiguousarray(rows + 0.0)}
    fresh = [row.tobytes() not in known for rows in second for row in np.ascontiguousarray(rows + 0.0)]
    return float(np.mean(fresh))


def _weighted(tables: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(tables), np.concatenate([np.full(len(rows), 1 / max(len(rows), 1)) for rows in tables])
