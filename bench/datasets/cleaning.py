"""Prepare arbitrary graphs for training (undirected, coalesced, no self-loops), or say why that is impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data


def problem(graph: Data) -> str | None:
    """A description of what makes a graph unusable for training; datasets may come from anywhere."""
    import torch

    nodes, edges = graph.num_nodes, graph.edge_index
    if not nodes:
        return "has no node"
    if edges is None or edges.dtype != torch.long or edges.dim() != 2 or edges.shape[0] != 2:
        return "has no edge_index of whole numbers with two rows"
    if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
        return f"has an edge to a node outside 0..{nodes - 1}"
    y = torch.as_tensor([] if graph.y is None else graph.y)
    if y.numel() != 1 or not bool(y.long() == y):
        return "has no class, a single whole number in y"
    if graph.x is not None:
        if graph.x.dim() != 2 or graph.x.shape[0] != nodes:
            return f"has features of shape {tuple(graph.x.shape)} for {nodes} nodes"
        if not bool(graph.x.isfinite().all()):
            return "has a feature that is not a finite number"
    return _weight_problem(graph)


def _weight_problem(graph: Data) -> str | None:
    import torch

    given, edges = graph.get("edge_weight"), graph.edge_index
    if given is None:
        return None
    weight = torch.as_tensor(given)
    count = edges.shape[1]
    if weight.is_complex() or weight.shape not in {(count,), (count, 1)}:
        return f"has an edge_weight of shape {tuple(weight.shape)} for {count} edges, not one number for each"
    weight = weight.to(torch.float32).reshape(-1)
    if not bool(weight.isfinite().all()):
        return "has an edge weight that is not a finite number"
    if bool((weight < 0).any()):
        return "has a negative edge weight, which the degrees of a GCN cannot take"
    codes, values = _undirected(graph, weight)
    order = np.argsort(codes, kind="stable")
    codes, values = codes[order], values[order]
    conflict = np.flatnonzero((codes[1:] == codes[:-1]) & (values[1:] != values[:-1]))
    if len(conflict):
        a, b = divmod(int(codes[conflict[0]]), int(graph.num_nodes or 1))
        first, second = values[conflict[0] : conflict[0] + 2]
        return (
            f"gives the edge between nodes {a} and {b} the weights {first:g} and {second:g}, but it can have only one"
        )
    return None


def _undirected(graph: Data, weight: Tensor) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """For each entry that is not a self-loop, the number of its undirected edge and its weight."""
    low, high = np.sort(graph.edge_index.numpy(), axis=0)
    real = low != high
    return (low * int(graph.num_nodes or 1) + high)[real], weight.numpy()[real]


def has_weights(graph: Data) -> bool:
    """Whether any edge between two nodes has a weight other than 1; weights of 1 carry no information."""
    import torch

    given = graph.get("edge_weight")
    if given is None:
        return False
    row, column = graph.edge_index
    return bool((torch.as_tensor(given).reshape(-1)[row != column] != 1).any())


def cleaned(graph: Data, label: int, weighted: bool) -> Data:
    """A copy with both directions of each edge once, sorted, with weights if the dataset has weights."""
    import torch
    from torch_geometric.data import Data

    nodes = int(graph.num_nodes or 0)
    row, column = graph.edge_index.numpy()
    real = row != column
    row, column = row[real], column[real]
    both = np.concatenate([row * nodes + column, column * nodes + row])
    pairs, first = np.unique(both, return_index=True)
    edges = torch.from_numpy(np.stack(np.divmod(pairs, max(nodes, 1))))
    clean = Data(edge_index=edges, y=torch.tensor([label]), num_nodes=nodes)
    if weighted:
        given = graph.get("edge_weight")
        weight = torch.ones(len(real)) if given is None else torch.as_tensor(given).to(torch.float32).reshape(-1)
        weight = weight[torch.from_numpy(real)]
        clean.edge_weight = torch.cat([weight, weight])[torch.from_numpy(first)]
    if graph.x is not None and graph.x.shape[1] > 0:
        clean.x = graph.x.to(torch.float32).clone()
    return clean
