"""Plain functions on graphs that the augmenters share; none changes its input."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data


def undirected_edge_ids(edge_index: Tensor) -> tuple[Tensor, int]:
    """For each directed edge the number of its undirected one, and how many undirected edges there are."""
    low, high = edge_index.min(dim=0).values, edge_index.max(dim=0).values
    span = int(high.max()) + 1 if high.numel() else 1
    codes, ids = torch.unique(low * span + high, return_inverse=True)
    return ids, codes.numel()


def with_edges(graph: Data, keep: Tensor) -> Data:
    """A copy with only the directed edges where `keep` is true, and their attributes."""
    new = copy.copy(graph)
    for name in ("edge_weight", "edge_attr"):
        if graph.get(name) is not None:
            new[name] = graph[name][keep]
    new.edge_index = graph.edge_index[:, keep]
    return new


def with_nodes(graph: Data, keep: np.ndarray) -> Data:
    """A copy with only the given nodes, renumbered in order; their rows leave `x` and every node attribute."""
    nodes = torch.as_tensor(np.sort(keep), dtype=torch.long)
    return graph.subgraph(nodes)


def with_weights(graph: Data, multiplier: Tensor) -> Data:
    """A copy whose edge weights (1 where it had none) are multiplied edge by edge."""
    new = copy.copy(graph)
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
