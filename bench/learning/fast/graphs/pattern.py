"""All pairs of nodes that may exchange messages, for methods that only change the factors of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from torch_geometric.data import Data

from bench.learning.fast.graphs.parts import edge_list
from bench.learning.fast.not_fast import NotFast


class Pattern:
    """All pairs that may exchange messages, sorted by receiver, then sender; `edge` is the directed edge of each."""

    def __init__(self, graphs: Sequence[Data], loops: bool) -> None:
        lists = [edge_list(graph) for graph in graphs]
        self.sizes = np.array([graph.num_nodes for graph in graphs], dtype=np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        self.nodes, self.edges = int(self.sizes.sum()), sum(len(part[0]) for part in lists)
        own = np.arange(self.nodes if loops else 0)
        row = np.concatenate([part[0] + start for part, start in zip(lists, starts, strict=True)] + [own])
        column = np.concatenate([part[1] + start for part, start in zip(lists, starts, strict=True)] + [own])
        weight = [np.ones(len(part[0])) if part[2] is None else part[2] for part in lists]
        order = np.lexsort((column, row))
        self.row, self.column = row[order], column[order]
        self.edge = np.minimum(order, self.edges)  # loops share the number after the last edge
        self.base = np.concatenate([*weight, np.ones(len(own))])[order]
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(self.row, minlength=self.nodes))])
        if ((np.diff(self.row) == 0) & (np.diff(self.column) == 0)).any():
            raise NotFast("an edge twice in one graph")
        if (self.base < 0).any():
            raise NotFast("a negative edge weight")

    def matrix(self) -> sp.csr_array:
        return sp.csr_array((self.base, self.column, self.offsets), shape=(self.nodes, self.nodes))
