"""Sparse matrix times a table of rows, both ways, as `embedding_bag`: measured fastest of torch's sparse products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

# What the two extra calls for shared sums cost, counted in entries of a sparse product (about 7 us at 2.4 ns).
SUMS_COST = 3000


@dataclass(frozen=True)
class Factored:
    """The matrix direct + spread @ gather; `gather` makes sums that many rows share, `spread` hands them out."""

    direct: sp.csr_array
    spread: sp.csr_array
    gather: sp.csr_array

    def merged(self, rows: np.ndarray, members: sp.csr_array) -> Factored:
        """Only these rows, with the columns of equal nodes (`members`: node x class) added up."""
        small = Factored(
            sp.csr_array(self.direct[rows] @ members),
            sp.csr_array(self.spread[rows]),
            sp.csr_array(self.gather @ members),
        )
        return small.expanded() if small.worth_expanding() else small

    def worth_expanding(self) -> bool:
        """Whether the product without sums is no dearer; bounded from the counts, so that nothing large is made."""
        if not self.gather.shape[0]:
            return False
        takers = np.bincount(self.spread.indices, minlength=self.gather.shape[0])
        bound = int((takers * np.diff(self.gather.indptr)).sum())
        return bound <= self.direct.nnz + self.spread.nnz + self.gather.nnz + SUMS_COST

    def expanded(self) -> Factored:
        """The same matrix without shared sums."""
        direct = sp.csr_array(self.direct + self.spread @ self.gather)
        direct.data[np.abs(direct.data) < 1e-12] = 0  # pairs that cancelled but for rounding
        direct.eliminate_zeros()
        rows, columns = direct.shape
        return Factored(direct, sp.csr_array((rows, 0)), sp.csr_array((0, columns)))

    def beside(self, more: sp.csr_array) -> Factored:
        """This matrix with more columns to its right."""
        blank = sp.csr_array((self.gather.shape[0], more.shape[1]))
        return Factored(
            sp.csr_array(sp.hstack([self.direct, more], format="csr")),
            self.spread,
            sp.csr_array(sp.hstack([self.gather, blank], format="csr")),
        )

    def with_bias(self) -> Factored:
        """With a last column of ones: the row that every node receives."""
        return self.beside(sp.csr_array(np.ones((self.direct.shape[0], 1))))

    def times(self, table: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(self.direct @ table + self.spread @ (self.gather @ table))


class Bag:
    """A sparse matrix that multiplies a table from the left; its values may be written anew between products."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self.index = torch.from_numpy(matrix.indices.astype(np.int32))
        self.offsets = torch.from_numpy(matrix.indptr.astype(np.int32))
        self.values = torch.from_numpy(matrix.data).to(torch.get_default_dtype())

    def with_values(self, values: Tensor) -> Bag:
        self.values = values
        return self

    def __call__(self, table: Tensor) -> Tensor:
        return torch.embedding_bag(table, self.index, self.offsets, False, 0, False, self.values, True)[0]


def transpose(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(matrix.T.tocsr())


def numbered(matrix: sp.csr_array) -> sp.csr_array:
    """The same pattern with 1, 2, 3, ... as its values."""
    return sp.csr_array((np.arange(matrix.nnz) + 1, matrix.indices, matrix.indptr), shape=matrix.shape)


@dataclass(frozen=True)
class Direction:
    """One way through a factored matrix: the sums that rows share, then the rows themselves."""

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
    """A direction over a buffer, whose first rows the caller fills; the sums' rows lie behind them."""

    def __init__(self, direction: Direction, source: Tensor) -> None:
        self.main, self.gather, self.source = direction.main, direction.gather, source
        self.rows, self.sum_rows = source[: direction.columns], source[direction.columns :]

    def __call__(self) -> Tensor:
        if self.gather is not None:
            self.sum_rows.copy_(self.gather(self.rows))
        return self.main(self.source)


class SparseRows:
    """A first layer's input that is mostly zeros (one-hot labels): it picks rows of the weights."""

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
    """Sparse where that is cheaper: an entry costs 2.4 ns in a sparse product, 1.4 ns in a dense one (width 64)."""
    if 2.4 * matrix.nnz < 1.4 * matrix.shape[0] * matrix.shape[1]:
        return SparseRows.of(matrix)
    return torch.from_numpy(matrix.toarray()).to(torch.get_default_dtype())
