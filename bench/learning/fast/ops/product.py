"""Products of a sparse matrix and a table, in both directions, as `embedding_bag`: the fastest of torch's sparse
products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.learning.fast.ops.factored import Factored, transpose
from bench.learning.fast.ops.torch_private import ADD, embedding_bag


class Entries(NamedTuple):
    """The rows of a sparse matrix, for code that creates many; scipy's constructors are slow."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


class Bag:
    """A sparse matrix that multiplies a table from the left; its values may be overwritten between products."""

    def __init__(self, matrix: sp.csr_array | Entries) -> None:
        self.index = torch.from_numpy(matrix.indices.astype(np.int32))
        self.offsets = torch.from_numpy(matrix.indptr.astype(np.int32))
        self.values = torch.from_numpy(matrix.data).to(torch.get_default_dtype())

    def with_values(self, values: Tensor) -> Bag:
        self.values = values
        return self

    def __call__(self, table: Tensor) -> Tensor:
        return embedding_bag(table, self.index, self.offsets, False, ADD, False, self.values, True)[0]


@dataclass(frozen=True)
class Direction:
    """One direction through a factored matrix: first the shared sums, then the rows."""

    main: Bag
    gather: Bag | None
    columns: int
    sums: int

    @classmethod
    def of(cls, matrix: Factored) -> Direction:
        columns, sums = matrix.direct.shape[1], matrix.gather.shape[0]
        if not sums:
            return cls(Bag(matrix.direct), None, columns, 0)
        main = sp.csr_array(sp.hstack([matrix.direct, matrix.spread], format="csr"))
        return cls(Bag(main), Bag(matrix.gather), columns, sums)


@dataclass(frozen=True)
class BothWays:
    """A matrix and its transpose; layers with the same matrix share it."""

    forward: Direction
    backward: Direction

    @classmethod
    def of(cls, matrix: Factored) -> BothWays:
        turned = Factored(transpose(matrix.direct), transpose(matrix.gather), transpose(matrix.spread))
        return cls(Direction.of(matrix), Direction.of(turned))


class Half:
    """A direction over a buffer whose first rows the caller fills; the rows of shared sums follow."""

    def __init__(self, direction: Direction, source: Tensor) -> None:
        self.main, self.gather, self.source = direction.main, direction.gather, source
        self.rows, self.sum_rows = source[: direction.columns], source[direction.columns :]

    def __call__(self) -> Tensor:
        if self.gather is not None:
            self.sum_rows.copy_(self.gather(self.rows))
        return self.main(self.source)


class SparseRows:
    """A sparse input of the first layer (such as one-hot labels): it selects rows of the weights."""

    def __init__(self, matrix: Bag, transposed: Bag) -> None:
        self.matrix, self.transposed = matrix, transposed

    @classmethod
    def of(cls, matrix: sp.csr_array) -> SparseRows:
        return cls(Bag(matrix), Bag(transpose(matrix)))


Rows = Tensor | SparseRows


def multiply(rows: Rows, weight: Tensor, out: Tensor) -> Tensor:
    """rows @ weight."""
    return torch.mm(rows, weight, out=out) if isinstance(rows, Tensor) else out.copy_(rows.matrix(weight))


def multiply_transposed(rows: Rows, gradient: Tensor, out: Tensor) -> Tensor:
    """rows^T @ gradient: the gradient of the weight."""
    return torch.mm(rows.t(), gradient, out=out) if isinstance(rows, Tensor) else out.copy_(rows.transposed(gradient))


def cheapest_rows(matrix: sp.csr_array) -> Rows:
    """Sparse if that is cheaper: an entry costs 2.4 ns in a sparse product, 1.4 ns in a dense one (width 64)."""
    if 2.4 * matrix.nnz < 1.4 * matrix.shape[0] * matrix.shape[1]:
        return SparseRows.of(matrix)
    return torch.from_numpy(matrix.toarray()).to(torch.get_default_dtype())
