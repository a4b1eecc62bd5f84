"""Functions on graphs that the augmenters share; none modifies its input or shares memory with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import Generator
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data


def undirected_edge_ids(edge_index: Tensor) -> tuple[Tensor, int]:
    """For each directed edge, the index of its undirected edge; and the number of undirected edges."""
    ids, ends = undirected_edges(edge_index)
    return ids, ends.shape[1]


def undirected_edges(edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """For each directed edge, the index of its undirected edge; and the two ends of each undirected edge, smaller index
    first.
    """
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    span = int(high.max()) + 1 if high.numel() else 1
    codes, ids = torch.unique(low * span + high, return_inverse=True)
    return ids, torch.stack([codes // span, codes % span])


class EdgeNumbers:
    """Nodes and undirected edges of several graphs, numbered consecutively across graphs.

    Both directions of an edge have the same number. Expensive properties are computed on first access.
    """

    def __init__(self, graphs: Sequence[Data]) -> None:
        self.sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)  # number of nodes of each graph
        self.starts = np.cumsum(self.sizes) - self.sizes  # first node of each graph
        self.nodes = int(self.sizes.sum())
        self._edges = [graph.edge_index for graph in graphs]

    @cached_property
    def _numbered(self) -> list[tuple[Tensor, Tensor]]:
        return [undirected_edges(edges) for edges in self._edges]

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of undirected edges of each graph."""
        return np.array([ends.shape[1] for _, ends in self._numbered], dtype=np.int64)

    @cached_property
    def total(self) -> int:
        """Number of undirected edges of all graphs."""
        return int(self.counts.sum())

    @cached_property
    def of_directed(self) -> np.ndarray:
        """The number of each directed edge of all graphs, graph by graph."""
        starts = np.cumsum(self.counts) - self.counts
        return np.concatenate([ids.numpy() + start for (ids, _), start in zip(self._numbered, starts, strict=True)])

    @cached_property
    def ends(self) -> np.ndarray:
        """The two nodes of each undirected edge, shape [2, total]."""
        parts = [ends.numpy() + start for (_, ends), start in zip(self._numbered, self.starts, strict=True)]
        return np.concatenate(parts, axis=1)

    @cached_property
    def graph_of_node(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def loops(self) -> np.ndarray:
        """Number of self-loops of each graph."""
        own = self.ends[0][self.ends[0] == self.ends[1]]
        return np.bincount(self.graph_of_node[own], minlength=len(self.sizes))

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """All graphs as one symmetric binary matrix, without self-loops."""
        numbered = self.numbered_adjacency
        return sp.csr_array((np.ones(numbered.nnz), numbered.indices, numbered.indptr), shape=numbered.shape)

    @cached_property
    def numbered_adjacency(self) -> sp.csr_array:
        """All graphs as one symmetric matrix without self-loops; entries are edge numbers, counted from 1."""
        (low, high), numbers = self.ends, np.arange(1, self.total + 1)
        apart = low != high
        rows, columns = np.concatenate([low, high])[np.tile(apart, 2)], np.concatenate([high, low])[np.tile(apart, 2)]
        entries = np.tile(numbers[apart], 2)
        return sp.csr_array((entries, (rows, columns)), shape=(self.nodes, self.nodes))

    @cached_property
    def propagation(self) -> sp.csr_array:
        """D^-1/2 (A + I) D^-1/2 of all graphs together; edge weights are ignored."""
        with_loops = sp.csr_array(self.adjacency + sp.eye_array(self.nodes, format="csr"))
        scale = sp.diags_array(1 / np.sqrt(with_loops.sum(axis=1)))
        return sp.csr_array(scale @ with_loops @ scale)

    @cached_property
    def triangles(self) -> np.ndarray:
        """For each entry of `adjacency`, the number of triangles that contain the edge."""
        adjacency = self.adjacency
        rows = np.repeat(np.arange(self.nodes), np.diff(adjacency.indptr))
        return np.asarray((adjacency @ adjacency)[rows, adjacency.indices]).reshape(-1)

    @cached_property
    def components(self) -> np.ndarray:
        """The connected component of each node."""
        labels: np.ndarray = connected_components(self.numbered_adjacency, directed=False)[1]
        return labels

    def split(self, values: np.ndarray) -> list[Tensor]:
        """Distribute values of undirected edges to the directed edges, one vector per graph."""
        directed = [edges.shape[1] for edges in self._edges]
        return list(torch.from_numpy(values[self.of_directed]).split(directed))


def choose_within(sizes: np.ndarray, chosen: np.ndarray, rng: Generator) -> np.ndarray:
    """For each group of `sizes`, draw that many members without replacement; members are numbered consecutively."""
    starts = np.cumsum(sizes) - sizes
    # The integer part is the group, the fraction is random: one sort shuffles within all groups.
    shuffled = np.argsort(np.repeat(np.arange(len(sizes)), sizes) + rng.random(int(sizes.sum())))
    taken = np.arange(int(chosen.sum())) + np.repeat(starts - (np.cumsum(chosen) - chosen), chosen)
    return shuffled[taken]


def kept_sizes(sizes: np.ndarray, p: float) -> np.ndarray:
    """How many nodes of each graph remain when int(p n) are removed; at least one if the graph has nodes."""
    kept: np.ndarray = np.maximum(sizes - (p * sizes).astype(np.int64), np.minimum(sizes, 1))
    return kept


def one_per_graph(sizes: np.ndarray, rng: Generator) -> np.ndarray:
    """One random node of each graph; every graph has at least one."""
    starts = np.cumsum(sizes) - sizes
    return starts + (rng.random(len(sizes)) * sizes).astype(np.int64)


def first_in_each_graph(graphs: EdgeNumbers, order: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The first `counts` nodes of each graph, where `order` lists all nodes graph by graph."""
    place = np.arange(graphs.nodes) - np.repeat(graphs.starts, graphs.sizes)
    first: np.ndarray = order[place < np.repeat(counts, graphs.sizes)]
    return first


def edge_weights(graph: Data) -> Tensor:
    """The weight of each directed edge; 1 if the graph is unweighted."""
    weight: Tensor | None = graph.get("edge_weight")
    return torch.ones(graph.num_edges) if weight is None else weight


def with_edges(graph: Data, keep: Tensor) -> Data:
    """A copy with only the directed edges for which `keep` is true, and their attributes."""
    new = graph.clone()
    for name in ("edge_weight", "edge_attr"):
        if graph.get(name) is not None:
            new[name] = graph[name][keep]
    new.edge_index = graph.edge_index[:, keep]
    return new


def with_nodes(graph: Data, keep: np.ndarray) -> Data:
    """A copy with only the given nodes, renumbered in order; `x` and all node attributes keep only their rows."""
    nodes = torch.as_tensor(np.sort(keep), dtype=torch.long)
    return graph.subgraph(nodes).clone()


def with_weights(graph: Data, multiplier: Tensor) -> Data:
    """A copy whose edge weights (1 if unweighted) are multiplied by one factor per edge."""
    new = graph.clone()
    old = graph.get("edge_weight")
    new.edge_weight = multiplier if old is None else old * multiplier
    return new


def any_weighted(graphs: Sequence[Data]) -> bool:
    """Whether any of these graphs has edge weights, in which case new graphs need them too."""
    return any(graph.get("edge_weight") is not None for graph in graphs)


def density(graph: Data) -> float:
    """The share of node pairs that are connected, ignoring direction and self-loops."""
    n = int(graph.num_nodes or 0)
    edges = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
    return undirected_edge_ids(edges)[1] / (n * (n - 1) / 2) if n > 1 else 0.0
