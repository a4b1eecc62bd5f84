"""The structure of a graph in numbers: density, degrees, clustering and the spectrum of its normalized Laplacian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from scipy.sparse.csgraph import breadth_first_order
from scipy.stats import wasserstein_distance
from torch_geometric.data import Data

MOST_NODES = 1000  # clustering and spectrum of larger graphs are measured on a subgraph: both take cubic time
MOST_GRAPHS = 200  # per trial
COMPARED = ("degree", "clustering", "spectrum")


@dataclass(frozen=True)
class Shape:
    """Statistics of one graph; edge weights are ignored, except for their mean in `weight`."""

    nodes: int
    density: float
    degree: np.ndarray
    clustering: np.ndarray
    spectrum: np.ndarray
    weight: float | None
    pieced: bool  # clustering and spectrum are those of a subgraph


def shape_of(graph: Data, rng: Generator) -> Shape:
    """Measure a graph; `rng` chooses the subgraph if the graph is too large."""
    n = int(graph.num_nodes or 0)
    rows, columns = graph.edge_index.numpy()
    apart = rows != columns
    adjacency = sp.csr_array((np.ones(int(apart.sum())), (rows[apart], columns[apart])), shape=(n, n))
    adjacency.sum_duplicates()  # SciPy before 1.14 does not do this itself
    adjacency.data[:] = 1.0  # duplicate edges count once
    degree = np.diff(adjacency.indptr).astype(float)
    piece = adjacency[:, kept][kept] if n > MOST_NODES and len(kept := grown_piece(adjacency, rng)) else adjacency
    dense = piece.toarray()
    weight = graph.get("edge_weight")
    return Shape(
        nodes=n,
        density=float(degree.sum() / (n * (n - 1))) if n > 1 else 0.0,
        degree=degree,
        clustering=local_clustering(dense),
        spectrum=laplacian_spectrum(dense),
        weight=float(weight.mean()) if weight is not None and weight.numel() else None,
        pieced=n > MOST_NODES,
    )


def grown_piece(adjacency: sp.csr_array, rng: Generator, size: int = MOST_NODES) -> np.ndarray:
    """Nodes around a random one in breadth-first order, then around another one if the component ends.

    This keeps neighborhoods intact, unlike a random choice of nodes.
    """
    kept: list[int] = []
    seen = np.zeros(adjacency.shape[0], dtype=bool)
    for start in rng.permutation(adjacency.shape[0]):
        if seen[start]:
            continue
        reached = breadth_first_order(adjacency, int(start), directed=False, return_predecessors=False)
        seen[reached] = True
        kept += reached[: size - len(kept)].tolist()
        if len(kept) == size:
            break
    return np.sort(np.array(kept))


def local_clustering(adjacency: np.ndarray) -> np.ndarray:
    """For each node, the share of pairs of neighbors that are connected; 0 with fewer than two neighbors."""
    degree = adjacency.sum(axis=1)
    joined = ((adjacency @ adjacency) * adjacency).sum(axis=1)  # each connected pair of neighbors twice
    pairs = degree * (degree - 1)
    return np.divide(joined, pairs, out=np.zeros_like(pairs), where=pairs > 0)


def laplacian_spectrum(adjacency: np.ndarray) -> np.ndarray:
    """Eigenvalues of I - D^-1/2 A D^-1/2 in ascending order, from 0 to 2; an isolated node adds a 0."""
    degree = adjacency.sum(axis=1)
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    laplacian = np.diag((degree > 0).astype(float)) - scale[:, None] * adjacency * scale
    return np.clip(np.linalg.eigvalsh(laplacian), 0.0, 2.0)


def distances(first: list[Shape], second: list[Shape]) -> dict[str, float]:
    """Wasserstein-1 distances between two sets of graphs."""
    found = {}
    for name in COMPARED:
        (values, weights), (others, other_weights) = pooled(first, name), pooled(second, name)
        found[name] = float(wasserstein_distance(values, others, weights, other_weights))
    return found


def pooled(shapes: list[Shape], name: str) -> tuple[np.ndarray, np.ndarray]:
    """One statistic of all graphs of a set, with weights such that every graph counts the same."""
    parts = [np.atleast_1d(getattr(shape, name)) for shape in shapes]
    return np.concatenate(parts), np.concatenate([np.full(len(part), 1 / len(part)) for part in parts])


def sampled(graphs: list[Data], rng: Generator) -> list[Data]:
    """At most MOST_GRAPHS of them, in their order."""
    if len(graphs) <= MOST_GRAPHS:
        return graphs
    return [graphs[i] for i in np.sort(rng.choice(len(graphs), MOST_GRAPHS, replace=False))]
