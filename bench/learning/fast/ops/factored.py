"""Sparse matrices prepared before training, with sums that many rows share factored out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

# The cost of the two extra calls for shared sums, in entries of a sparse product (about 7 us at 2.4 ns).
SUMS_COST = 3000


@dataclass(frozen=True)
class Factored:
    """The matrix direct + spread @ gather; `gather` computes sums that many rows share, `spread` distributes them."""

    direct: sp.csr_array
    spread: sp.csr_array
    gather: sp.csr_array

    def merged(self, rows: np.ndarray, members: sp.csr_array) -> Factored:
        """Only these rows, with the columns of equal nodes (`members`: node x class) summed."""
        small = Factored(
            sp.csr_array(self.direct[rows] @ members),
            sp.csr_array(self.spread[rows]),
            sp.csr_array(self.gather @ members),
        )
        return small.expanded() if small.worth_expanding() else small

    def worth_expanding(self) -> bool:
        """Whether the product without shared sums is no more expensive, estimated from counts only."""
        if not self.gather.shape[0]:
            return False
        takers = np.bincount(self.spread.indices, minlength=self.gather.shape[0])
        bound = int((takers * np.diff(self.gather.indptr)).sum())
        return bound <= self.direct.nnz + self.spread.nnz + self.gather.nnz + SUMS_COST

    def expanded(self) -> Factored:
        """The same matrix without shared sums."""
        direct = sp.csr_array(self.direct + self.spread @ self.gather)
        direct.data[np.abs(direct.data) < 1e-12] = 0  # pairs that canceled except for rounding
        direct.eliminate_zeros()
        rows, columns = direct.shape
        return Factored(direct, sp.csr_array((rows, 0)), sp.csr_array((0, columns)))

    def beside(self, more: sp.csr_array) -> Factored:
        """This matrix with additional columns on the right."""
        blank = sp.csr_array((self.gather.shape[0], more.shape[1]))
        return Factored(
            sp.csr_array(sp.hstack([self.direct, more], format="csr")),
            self.spread,
            sp.csr_array(sp.hstack([self.gather, blank], format="csr")),
        )

    def with_bias(self) -> Factored:
        """With a last column of ones for the bias, which every node receives."""
        return self.beside(sp.csr_array(np.ones((self.direct.shape[0], 1))))

    def times(self, table: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(self.direct @ table + self.spread @ (self.gather @ table))


def transpose(matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(matrix.T.tocsr())


def numbered(matrix: sp.csr_array) -> sp.csr_array:
    """The same pattern with 1, 2, 3, ... as values."""
    return sp.csr_array((np.arange(matrix.nnz) + 1, matrix.indices, matrix.indptr), shape=matrix.shape)
