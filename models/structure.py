"""The structure of several graphs as one block-diagonal matrix: edges, degrees, uniformly sampled non-edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy import sparse
from torch_geometric.data import Data

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Structure:
    """Undirected edges of many graphs, without self-loops; nodes and pairs are numbered consecutively across graphs.

    A pair i < j of a graph has the code j (j - 1) / 2 + i, which does not depend on the size of the graph. `codes`
    contains the codes of the edges in ascending order, offset by the number of pairs of the preceding graphs.
    """

    sizes: np.ndarray  # number of nodes of each graph
    codes: np.ndarray  # sorted codes of the edges
    weights: np.ndarray  # weight of each edge; 1 if the graph is unweighted
    owner: np.ndarray  # graph of each edge

    @classmethod
    def of(cls, graphs: Sequence[Data]) -> Structure:
        """Combine both directions of an edge into one pair with their mean weight."""
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs], dtype=np.int64)
        starts = _starts(sizes * (sizes - 1) // 2)
        codes, weights = [], []
        for graph, start in zip(graphs, starts, strict=True):
            low, high = np.sort(graph.edge_index.cpu().numpy(), axis=0)
            off_diagonal = low < high
            codes.append(start + (high * (high - 1) // 2 + low)[off_diagonal])
            given = graph.get("edge_weight")
            weight = np.ones(len(low)) if given is None else given.detach().cpu().numpy().astype(float).reshape(-1)
            weights.append(weight[off_diagonal])
        every = np.concatenate([*codes, np.empty(0, dtype=np.int64)])
        unique, where, times = np.unique(every, return_inverse=True, return_counts=True)
        mean = np.bincount(where, np.concatenate([*weights, np.empty(0)]), minlength=len(unique)) / times
        owner = np.searchsorted(starts, unique, side="right") - 1
        return cls(sizes, unique, mean.astype(np.float32), owner)

    @cached_property
    def node_starts(self) -> np.ndarray:
        """Number of the first node of each graph."""
        return _starts(self.sizes)

    @cached_property
    def positions(self) -> np.ndarray:
        """Position of each node within its graph."""
        return np.arange(self.sizes.sum()) - np.repeat(self.node_starts, self.sizes)

    @cached_property
    def edges(self) -> Pairs:
        """The two ends of each edge."""
        return self._ends(self.codes, self.owner)

    @cached_property
    def degrees(self) -> np.ndarray:
        """D[i, i] = sum_j A[i, j] (Eq. 6)."""
        ends, both = np.concatenate(self.edges), np.concatenate([self.weights, self.weights])
        return np.bincount(ends, both, minlength=int(self.sizes.sum())).astype(np.float32)

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """D^-1/2 (A + I) D^-1/2, where D has the degrees of A + I: the propagation matrix of a GCN layer, symmetric."""
        scale = 1 / np.sqrt(self.degrees + 1)
        (first, second), nodes = self.edges, np.arange(len(scale))
        rows, columns = np.concatenate([first, second, nodes]), np.concatenate([second, first, nodes])
        values = np.concatenate([self.weights, self.weights, np.ones_like(scale)]) * scale[rows] * scale[columns]
        return sparse.csr_array((values, (rows, columns)), shape=(len(scale), len(scale)), dtype=np.float32)

    def sample_non_edges(self, rng: Generator) -> Pairs:
        """One non-edge of the same graph for each edge, uniform with replacement; none for complete graphs.

        Let c_k be the k-th edge code; then c_k - k of the pairs before it are non-edges. So the r-th non-edge has the
        code r + #{k : c_k - k <= r}. This is exact and rejects no draw even if a graph is nearly complete.
        """
        owner, start, span, before = self._non_edge_ranks
        ranks = start + rng.integers(0, span)
        return self._ends(ranks + np.searchsorted(before, ranks, side="right"), owner)

    @cached_property
    def _non_edge_ranks(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        free = self.sizes * (self.sizes - 1) // 2 - np.bincount(self.owner, minlength=len(self.sizes))
        owner = self.owner[free[self.owner] > 0]
        return owner, _starts(free)[owner], free[owner], self.codes - np.arange(len(self.codes))

    def _ends(self, codes: np.ndarray, owner: np.ndarray) -> Pairs:
        code = codes - _starts(self.sizes * (self.sizes - 1) // 2)[owner]
        high = ((1 + np.sqrt(1 + 8 * code)) // 2).astype(np.int64)  # exact: 1 + 8 code is a square where it matters
        start = self.node_starts[owner]
        return start + code - high * (high - 1) // 2, start + high


def _starts(lengths: np.ndarray) -> np.ndarray:
    """The start of each of several consecutive ranges."""
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)[: len(lengths)]
