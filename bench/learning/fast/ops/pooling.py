"""Handwritten readouts: from rows of nodes (or classes of equal nodes) to one row per graph, and back."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.learning.fast.ops.product import Bag
from bench.learning.fast.ops.torch_private import LARGEST, embedding_bag

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
    """The maximum of each channel; among equal rows, one gets the gradient, which is the same for all of them."""

    def __init__(self, matrix: sp.csr_array, width: int) -> None:
        self.index = torch.from_numpy(matrix.indices.astype(np.int64))
        self.offsets = torch.from_numpy(matrix.indptr.astype(np.int64))
        self.gradient = torch.empty(matrix.shape[1] * width)
        self.rows, self.taken = matrix.shape[1], self.index

    def forward(self, rows: Tensor) -> Tensor:
        largest, _, _, self.taken = embedding_bag(rows, self.index, self.offsets, False, LARGEST, False, None, True)
        return largest

    def backward(self, gradient: Tensor) -> Tensor:
        width = gradient.shape[1]
        rows = self.gradient[: self.rows * width].view(self.rows, width)
        return rows.zero_().scatter_add_(0, self.taken, gradient)


class KeptWeightedPooling(WeightedPooling):
    """Mean or sum over the nodes kept in this epoch."""

    def __init__(self, name: ReadoutName, sizes: np.ndarray) -> None:
        super().__init__(every_node(sizes))
        self.mean, self.graph = name == "mean", np.repeat(np.arange(len(sizes)), sizes)
        self.share = self.transposed.values

    def keep(self, nodes: Tensor, mask: Tensor) -> None:
        """Set the kept nodes, graph by graph; `mask` is one for them and zero for the others."""
        self.matrix.index = nodes.to(torch.int32)
        torch.mul(self.share, mask, out=self.transposed.values)

    def recount(self, counts: np.ndarray) -> None:
        """Set the number of kept nodes of each graph."""
        weight = 1.0 / np.maximum(counts, 1) if self.mean else np.ones(len(counts))
        self.matrix.offsets = offsets_of(counts).to(torch.int32)
        self.matrix.values = torch.from_numpy(np.repeat(weight, counts)).to(torch.get_default_dtype())
        self.share = torch.from_numpy(weight[self.graph]).to(torch.get_default_dtype())


class KeptMaxPooling(MaxPooling):
    """The maximum over the nodes kept in this epoch."""

    def __init__(self, sizes: np.ndarray, width: int) -> None:
        super().__init__(every_node(sizes), width)

    def keep(self, nodes: Tensor, mask: Tensor) -> None:
        self.index = nodes

    def recount(self, counts: np.ndarray) -> None:
        self.offsets = offsets_of(counts)


KeptPooling = KeptWeightedPooling | KeptMaxPooling


def offsets_of(counts: np.ndarray) -> Tensor:
    """The first node of each graph, and the end of the last one."""
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts)]))


def every_node(sizes: np.ndarray) -> sp.csr_array:
    """Graph x node, one where the node belongs to the graph."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return sp.csr_array((np.ones(offsets[-1]), np.arange(offsets[-1]), offsets), shape=(len(sizes), offsets[-1]))


def kept_pooling(name: ReadoutName, sizes: np.ndarray, width: int) -> KeptPooling:
    """The readout over nodes that are chosen in each epoch."""
    return KeptMaxPooling(sizes, width) if name == "max" else KeptWeightedPooling(name, sizes)


def pooling(name: ReadoutName, sizes: np.ndarray, row_of_node: np.ndarray, rows: int, width: int) -> Pooling:
    """The readout of graphs of these sizes over the last layer's rows, one per class of equal nodes."""
    graph = np.repeat(np.arange(len(sizes)), sizes)
    weight = 1.0 / sizes[graph] if name == "mean" else np.ones(len(graph))
    matrix = sp.csr_array((weight, (graph, row_of_node)), shape=(len(sizes), rows))
    return MaxPooling(matrix, width) if name == "max" else WeightedPooling(matrix)
