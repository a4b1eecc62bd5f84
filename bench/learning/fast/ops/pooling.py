"""Readouts by hand: rows of nodes (or classes of equal nodes) to one row a graph, and back."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.learning.fast.graphs.classes import Classes
from bench.learning.fast.ops.product import Bag

ReadoutName = Literal["mean", "add", "max"]


class Pooling(Protocol):
    def forward(self, rows: Tensor) -> Tensor: ...

    def backward(self, gradient: Tensor) -> Tensor: ...


class WeightedPooling:
    """Mean or sum: a fixed sparse matrix."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.matrix, self.transposed = Bag(matrix), Bag(sp.csr_array(matrix.T.tocsr()))

    def forward(self, rows: Tensor) -> Tensor:
        return self.matrix(rows)

    def backward(self, gradient: Tensor) -> Tensor:
        return self.transposed(gradient)


class MaxPooling:
    """The largest value of each channel; of equal rows one takes the gradient, which is the same for all of them."""

    def __init__(self, matrix: sp.csr_array, width: int) -> None:
        self.index = torch.from_numpy(matrix.indices.astype(np.int64))
        self.offsets = torch.from_numpy(matrix.indptr.astype(np.int64))
        self.gradient = torch.empty(matrix.shape[1] * width)
        self.rows, self.taken = matrix.shape[1], self.index

    def forward(self, rows: Tensor) -> Tensor:
        largest, _, _, self.taken = torch.embedding_bag(rows, self.index, self.offsets, False, 2, False, None, True)
        return largest

    def backward(self, gradient: Tensor) -> Tensor:
        width = gradient.shape[1]
        rows = self.gradient[: self.rows * width].view(self.rows, width)
        return rows.zero_().scatter_add_(0, self.taken, gradient)


class KeptWeightedPooling(WeightedPooling):
    """Mean or sum over the nodes that stay this epoch, always as many in each graph."""

    def __init__(self, name: ReadoutName, sizes: np.ndarray, kept: np.ndarray) -> None:
        super().__init__(first_nodes(sizes, kept, 1.0 / kept if name == "mean" else np.ones(len(kept))))
        graph = np.repeat(np.arange(len(sizes)), sizes)
        share = 1.0 / kept[graph] if name == "mean" else np.ones(len(graph))
        every = sp.csr_array((share, graph, np.arange(len(graph) + 1)), shape=(len(graph), len(sizes)))
        self.transposed = Bag(every)
        self.share = self.transposed.values.clone()

    def keep(self, nodes: Tensor, mask: Tensor) -> None:
        """`nodes` stay, graph after graph; `mask` is one for them, zero for the others."""
        self.matrix.index = nodes.to(torch.int32)
        torch.mul(self.share, mask, out=self.transposed.values)


class KeptMaxPooling(MaxPooling):
    """The largest value over the nodes that stay this epoch."""

    def __init__(self, sizes: np.ndarray, kept: np.ndarray, width: int) -> None:
        super().__init__(first_nodes(sizes, kept, np.ones(len(kept))), width)

    def keep(self, nodes: Tensor, mask: Tensor) -> None:
        self.index = nodes


KeptPooling = KeptWeightedPooling | KeptMaxPooling


def first_nodes(sizes: np.ndarray, kept: np.ndarray, weight: np.ndarray) -> sp.csr_array:
    """Graph x node with as many entries as nodes stay; which ones is said each epoch."""
    offsets = np.concatenate([[0], np.cumsum(kept)])
    return sp.csr_array((np.repeat(weight, kept), np.arange(offsets[-1]), offsets), shape=(len(kept), sizes.sum()))


def kept_pooling(name: ReadoutName, sizes: np.ndarray, kept: np.ndarray, width: int) -> KeptPooling:
    """The readout over `kept` nodes of each graph."""
    return KeptMaxPooling(sizes, kept, width) if name == "max" else KeptWeightedPooling(name, sizes, kept)


def pooling(name: ReadoutName, sizes: np.ndarray, classes: Classes, width: int) -> Pooling:
    """The readout of graphs of these sizes over the classes of the last layer."""
    graph = np.repeat(np.arange(len(sizes)), sizes)
    weight = 1.0 / sizes[graph] if name == "mean" else np.ones(len(graph))
    matrix = sp.csr_array((weight, (graph, classes.of_node)), shape=(len(sizes), classes.count))
    return MaxPooling(matrix, width) if name == "max" else WeightedPooling(matrix)
