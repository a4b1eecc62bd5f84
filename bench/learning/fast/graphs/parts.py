"""One graph as the engine stores it: by its edges, or by its missing pairs if those are fewer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from bench.learning.fast.not_fast import NotFast
from models.sparse_features import is_sparse

Features: TypeAlias = np.ndarray | sp.csr_array  # sparse if a table would be wide and almost empty
EdgeList = tuple[np.ndarray, np.ndarray, np.ndarray | None]  # targets, sources, weights


@dataclass(frozen=True)
class Part:
    """One graph: its features, and its edges or missing pairs."""

    x: Features
    target: np.ndarray
    source: np.ndarray
    weight: np.ndarray | None
    gain: int  # entries saved by storing missing pairs; 0: these are the edges

    @classmethod
    def of(cls, graph: Data, whole: bool = False) -> Part:
        """`whole` keeps the edge list as it is (attention needs each pair)."""
        target, source, weight = edge_list(graph)
        x = graph.x.matrix() if is_sparse(graph.x) else graph.x.numpy()
        size, plain = int(graph.num_nodes), weight is None or bool((weight == 1).all())
        # `Sum of all rows - the missing ones` costs 2n entries plus the missing pairs.
        gain = 2 * len(target) - size * size - size
        if not whole and plain and gain > 0:
            table = pairs(size, target, source)
            if int(table.sum()) == len(target):  # no duplicate edges
                return cls(x, *others(table), None, gain)
        return cls(x, target.astype(np.int32), source.astype(np.int32), weight, 0)

    def edges(self) -> EdgeList:
        """The edges, however they are stored."""
        if not self.gain:
            return self.target, self.source, self.weight
        return *others(pairs(self.x.shape[0], self.target, self.source)), None


def parts_of(graphs: Iterable[Data], whole: bool) -> list[Part]:
    """Graphs in the engine's format; the graphs of an iterator need not be in memory at the same time."""
    return [Part.of(graph, whole) for graph in graphs]


def edge_list(graph: Data) -> EdgeList:
    """Targets, sources and weights of a graph's edges."""
    if not graph.num_nodes:
        raise NotFast("a graph without nodes")
    if graph.x.dtype != torch.get_default_dtype():
        raise NotFast(f"node features of type {graph.x.dtype}")
    source, target = graph.edge_index.numpy()
    if (source == target).any():
        raise NotFast("a self loop among the edges")
    weight = graph.get("edge_weight")
    if weight is not None and (weight.dim() != 1 or weight.dtype != graph.x.dtype):
        raise NotFast("edge weights that are not one number per edge of the features' type")
    return target, source, None if weight is None else weight.numpy()


def pairs(size: int, target: np.ndarray, source: np.ndarray) -> np.ndarray:
    """The graph as a boolean table."""
    table = np.zeros((size, size), dtype=bool)
    table[target, source] = True
    return table


def others(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of different nodes that are not in a table (whose diagonal is overwritten)."""
    np.fill_diagonal(table, True)
    absent = np.nonzero(~table)
    return absent[0].astype(np.int32), absent[1].astype(np.int32)
