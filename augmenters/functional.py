"""Plain functions on graphs that the augmenters share; none changes its input or shares memory with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data


def undirected_edge_ids(edge_index: Tensor) -> tuple[Tensor, int]:
    """For each directed edge the number of its undirected one, and how many undirected edges there are."""
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    span = int(high.max()) + 1 if high.numel() else 1
    codes, ids = torch.unique(low * span + high, return_inverse=True)
    return ids, codes.numel()


@dataclass(frozen=True)
class EdgeNumbers:
    """The undirected edges of several graphs, numbered through; both directions of an edge share its number."""

    of_directed: np.ndarray  # for each directed edge of all graphs, one graph after another
    counts: np.ndarray  # undirected edges of each graph
    directed: list[int]  # directed edges of each graph

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def split(self, values: np.ndarray) -> list[Tensor]:
        """Values of undirected edges handed to the directed ones, one vector a graph."""
        return list(torch.from_numpy(values[self.of_directed]).split(self.directed))


def number_edges(graphs: Sequence[Data]) -> EdgeNumbers:
    """Number the undirected edges of all graphs."""
    numbered = [undirected_edge_ids(graph.edge_index) for graph in graphs]
    counts = np.array([count for _, count in numbered], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    ids = [ids.numpy() + start for (ids, _), start in zip(numbered, starts, strict=True)]
    return EdgeNumbers(np.concatenate(ids), counts, [len(part) for part in ids])


def choose_within(sizes: np.ndarray, chosen: np.ndarray, rng: Generator) -> np.ndarray:
    """For each group of `sizes` (numbered through), that many members drawn without replacement."""
    starts = np.cumsum(sizes) - sizes
    # The group's number before the point and a random fraction behind it: one sort shuffles within all groups.
    shuffled = np.argsort(np.repeat(np.arange(len(sizes)), sizes) + rng.random(int(sizes.sum())))
    taken = np.arange(int(chosen.sum())) + np.repeat(starts - (np.cumsum(chosen) - chosen), chosen)
    return shuffled[taken]


def with_edges(graph: Data, keep: Tensor) -> Data:
    """A copy with only the directed edges where `keep` is true, and their attributes."""
    new = graph.clone()
    for name in ("edge_weight", "edge_attr"):
        if graph.get(name) is not None:
            new[name] = graph[name][keep]
    new.edge_index = graph.edge_index[:, keep]
    return new


def with_nodes(graph: Data, keep: np.ndarray) -> Data:
    """A copy with only the given nodes, renumbered in order; their rows leave `x` and every node attribute."""
    nodes = torch.as_tensor(np.sort(keep), dtype=torch.long)
    return graph.subgraph(nodes).clone()


def with_weights(graph: Data, multiplier: Tensor) -> Data:
    """A copy whose edge weights (1 where it had none) are multiplied edge by edge."""
    new = graph.clone()
    old = graph.get("edge_weight")
    new.edge_weight = multiplier if old is None else old * multiplier
    return new


def any_weighted(graphs: Sequence[Data]) -> bool:
    """Whether some of these graphs carry edge weights, so that new ones must too."""
    return any(graph.get("edge_weight") is not None for graph in graphs)


def density(graph: Data) -> float:
    """The share of all pairs of nodes that are joined, whatever the direction; self loops do not count."""
    n = int(graph.num_nodes or 0)
    edges = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
    return undirected_edge_ids(edges)[1] / (n * (n - 1) / 2) if n > 1 else 0.0
