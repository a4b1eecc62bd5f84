"""The aggregation matrix of an epoch, from the factor of each pair: positions are fixed, values change."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.learning.fast.graphs.aggregation import Kind
from bench.learning.fast.graphs.first_input import first_input
from bench.learning.fast.graphs.pattern import Pattern
from bench.learning.fast.ops.factored import numbered, transpose
from bench.learning.fast.ops.product import Bag, BothWays, Direction, Rows, cheapest_rows
from models.sparse_features import sparse_matrix

TINY = torch.finfo(torch.float32).tiny


class ChangingConvolution:
    """The aggregation matrix of one backbone over a pattern, for all layers, with different values in each epoch."""

    def __init__(self, kind: Kind, pattern: Pattern, x: Tensor) -> None:
        self.kind, self.nodes, pairs = kind, pattern.nodes, len(pattern.row)
        self.row, self.column = torch.from_numpy(pattern.row), torch.from_numpy(pattern.column)
        self.first = first_input(pattern, x)
        self.own = (cheapest_rows(sparse_matrix(x).astype(np.float64)),) if kind == "sage" else ()
        plain = bool((pattern.base == 1).all())
        self.base = None if plain else torch.from_numpy(pattern.base).to(torch.get_default_dtype()).view(-1, 1)
        ones, every = np.ones(pairs), np.arange(pairs)
        self.degrees = Bag(sp.csr_array((ones, every, pattern.offsets), shape=(pattern.nodes, pairs)))
        # A matrix of positions among the values, counted from 1, because a sparse matrix may drop zeros.
        matrix = numbered(pattern.matrix())
        always = [sp.eye_array(self.nodes, format="csr")] if kind == "sage" else []
        always.append(sp.csr_array(np.ones((self.nodes, 1))))
        matrix = sp.csr_array(sp.hstack([matrix, *(part * (pairs + 1) for part in always)], format="csr"))
        turned = transpose(matrix)
        self.forward, self.backward = Bag(matrix), Bag(turned)
        self.forward_order, self.backward_order = (
            torch.from_numpy(part.data.astype(np.int64) - 1) for part in (matrix, turned)
        )
        self.both_ways = BothWays(
            Direction(self.forward, None, matrix.shape[1], 0), Direction(self.backward, None, self.nodes, 0)
        )

    def prepare(self, weights: Tensor) -> None:
        """The values of several epochs at once, from the factor of each pair (pairs x epochs); loops have 1."""
        weights = weights if self.base is None else weights * self.base
        values = weights.new_ones(len(weights) + 1, weights.shape[1])  # own rows and the bias have factor 1
        pairs = values[:-1]
        if self.kind == "gin":
            pairs.copy_(weights)
        else:
            scale = self.degrees(weights)
            scale = scale.rsqrt_() if self.kind == "gcn" else scale.clamp_(min=TINY).reciprocal_()
            torch.mul(weights, scale.index_select(0, self.row), out=pairs)
            if self.kind == "gcn":
                pairs.mul_(scale.index_select(0, self.column))
        by_epoch = values.t().contiguous()
        self.forward_values = by_epoch.index_select(1, self.forward_order)
        self.backward_values = by_epoch.index_select(1, self.backward_order)
        self.first.prepare(pairs, by_epoch[:, :-1])

    def use(self, epoch: int) -> tuple[Rows, ...]:
        """Use the values of one of the prepared epochs; returns the first layer's input with them."""
        self.forward.values, self.backward.values = self.forward_values[epoch], self.backward_values[epoch]
        return self.first.use(epoch), *self.own
