"""Graphons of a set of graphs: aligned by degree, averaged, smoothed; and random graphs sampled from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from torch_geometric.data import Data

from models.sparse_features import is_sparse

Estimator = Literal["lg", "usvt"]
USVT_THRESHOLD = 0.2  # times sqrt(K), as in the authors' code


@dataclass(frozen=True)
class Graphon:
    """Edge probabilities on a K x K grid, and one feature row per position if the graphs have features."""

    probabilities: np.ndarray
    features: np.ndarray | sp.csr_array | None


def degree_order(graph: Data) -> np.ndarray:
    """The nodes by descending degree, ties in their own order."""
    degrees = np.bincount(graph.edge_index[0].numpy(), minlength=int(graph.num_nodes or 0))
    return np.argsort(-degrees, kind="stable")


def aligned_adjacency(graph: Data, size: int) -> np.ndarray:
    """The adjacency matrix in degree order, cropped to the first `size` nodes or padded with zeros.

    Edges of cropped nodes are removed while the matrix is sparse, because a graph may have thousands of nodes.
    """
    place = np.full(int(graph.num_nodes or 0), -1)
    kept = degree_order(graph)[:size]
    place[kept] = np.arange(len(kept))
    rows, columns = place[graph.edge_index.numpy()]
    inside = (rows >= 0) & (columns >= 0) & (rows != columns)
    adjacency = np.zeros((size, size))
    adjacency[rows[inside], columns[inside]] = 1.0
    return adjacency


def aligned_features(graphs: Sequence[Data], size: int) -> np.ndarray | sp.csr_array | None:
    """The mean feature row of each position in degree order, over the graphs that reach it.

    A position that no graph reaches gets the mean over all nodes: with zero padding, constant features would encode the
    size of the graph.
    """
    if any(graph.x is None for graph in graphs):
        return None
    if all(is_sparse(graph.x) for graph in graphs):
        return _aligned_sparse([graph.x.matrix().astype(np.float64)[degree_order(graph)] for graph in graphs], size)
    rows = [graph.x.numpy().astype(np.float64)[degree_order(graph)] for graph in graphs]
    total, reached = np.zeros((size, rows[0].shape[1])), np.zeros((size, 1))
    for row in rows:
        total[: len(row)] += row[:size]
        reached[: len(row)] += 1
    return np.where(reached > 0, total / np.maximum(reached, 1), np.concatenate(rows).mean(axis=0))


def _aligned_sparse(rows: Sequence[sp.csr_array], size: int) -> sp.csr_array:
    """The same for sparse rows in degree order."""
    total, reached = sp.csr_array((size, rows[0].shape[1])), np.zeros(size)
    for row in rows:
        first = row[:size]
        reached[: first.shape[0]] += 1
        first.resize(total.shape)
        total = total + first
    mean = sp.diags_array(1 / np.maximum(reached, 1)).tocsr() @ total
    if reached.all():
        return sp.csr_array(mean)
    everywhere = sp.csr_array(sp.vstack(rows).mean(axis=0)[None])
    return sp.csr_array(mean + sp.csr_array((reached == 0)[:, None].astype(np.float64)) @ everywhere)


def largest_gap(mean: np.ndarray) -> np.ndarray:
    """Largest gap (Channarond et al., 2012): splits nodes into blocks at the largest gaps of the sorted degrees.

    Each pair of nodes gets the mean of its block, without the diagonal, so the expected number of edges is unchanged.
    There are floor(log2 K) + 1 blocks.
    """
    size = len(mean)
    degrees = mean.sum(axis=1)
    order = np.argsort(-degrees, kind="stable")
    gaps = -np.diff(degrees[order])
    blocks = min(int(math.log2(size)) + 1, size)
    bounds = np.sort(np.argsort(-gaps, kind="stable")[: blocks - 1])
    block = np.empty(size, dtype=np.int64)
    block[order] = np.searchsorted(bounds, np.arange(size), side="left")
    member = np.eye(blocks)[block]
    pairs = member.T @ (1 - np.eye(size)) @ member
    means = np.divide(member.T @ mean @ member, pairs, out=np.zeros_like(pairs), where=pairs > 0)
    smooth: np.ndarray = member @ means @ member.T
    return smooth


def singular_value_threshold(mean: np.ndarray, threshold: float = USVT_THRESHOLD) -> np.ndarray:
    """USVT (Chatterjee, 2015): drops singular values below threshold x sqrt(K) and clips the result to [0, 1]."""
    values, vectors = np.linalg.eigh(mean)  # the matrix is symmetric: its singular values are |eigenvalues|
    values = np.where(np.abs(values) >= threshold * math.sqrt(len(mean)), values, 0.0)
    return np.clip((vectors * values) @ vectors.T, 0.0, 1.0)


def estimate_graphon(graphs: Sequence[Data], size: int, estimator: Estimator) -> Graphon:
    """Estimate the graphon of these graphs."""
    mean = np.zeros((size, size))
    for graph in graphs:
        mean += aligned_adjacency(graph, size) / len(graphs)
    smooth = largest_gap(mean) if estimator == "lg" else singular_value_threshold(mean)
    return Graphon(smooth, aligned_features(graphs, size))


def mix_graphons(first: Graphon, second: Graphon, share: float) -> Graphon:
    """lambda first + (1 - lambda) second, for probabilities and features."""
    features = None
    if first.features is not None and second.features is not None:
        features = share * first.features + (1 - share) * second.features
    return Graphon(share * first.probabilities + (1 - share) * second.probabilities, features)


def sample_edges(probabilities: np.ndarray, rng: Generator) -> np.ndarray:
    """One Bernoulli draw per pair i < j, as undirected pairs of shape [2, edges]."""
    low, high = np.triu_indices(len(probabilities), 1)
    hit = rng.random(len(low)) < probabilities[low, high]
    return np.stack([low[hit], high[hit]])
