"""Graphs that a per-epoch augmenter thins out or weighs: the pattern stays, only its values are made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bench.engine.fast.aggregation import Kind
from bench.engine.fast.graphs import NotFast, edge_list
from bench.engine.fast.product import Bag, BothWays, Direction, Rows, SparseRows, cheapest_rows, numbered, transpose

TINY = torch.finfo(torch.float32).tiny
FEW_FEATURES = 16  # up to this width, aggregating the features costs less than picking rows of the weights


class Pattern:
    """All pairs that may carry a message, sorted by receiver, then sender; `edge` is the directed edge of each."""

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


class ChangingConvolution:
    """The aggregation matrix of one backbone over a pattern, for all layers, with other values each epoch."""

    def __init__(self, kind: Kind, pattern: Pattern) -> None:
        self.kind, self.nodes, pairs = kind, pattern.nodes, len(pattern.row)
        self.row, self.column = torch.from_numpy(pattern.row), torch.from_numpy(pattern.column)
        self.offsets = pattern.offsets
        plain = bool((pattern.base == 1).all())
        self.base = None if plain else torch.from_numpy(pattern.base).to(torch.get_default_dtype()).view(-1, 1)
        ones, every = np.ones(pairs), np.arange(pairs)
        self.degrees = Bag(sp.csr_array((ones, every, pattern.offsets), shape=(pattern.nodes, pairs)))
        # A matrix of places among the values, counted from 1, since a sparse matrix may lose a zero.
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
        self.prepare(torch.ones(pairs, 1))
        self.use(0)

    def prepare(self, weights: Tensor) -> None:
        """The values of several epochs at once, from the factor of each pair (pairs x epochs); loops have 1."""
        weights = weights if self.base is None else weights * self.base
        values = weights.new_ones(len(weights) + 1, weights.shape[1])  # the last: own rows and the bias count once
        pairs = values[:-1]
        if self.kind == "gin":
            pairs.copy_(weights)
        else:
            scale = self.degrees(weights)
            scale = scale.rsqrt_() if self.kind == "gcn" else scale.clamp_(min=TINY).reciprocal_()
            torch.mul(weights, scale.index_select(0, self.row), out=pairs)
            if self.kind == "gcn":
                pairs.mul_(scale.index_select(0, self.column))
        places = (slice(0, -1), self.forward_order, self.backward_order)
        self.epochs = list(zip(*(values[place].t().contiguous().unbind() for place in places), strict=True))

    def use(self, epoch: int) -> None:
        """Take the values of one of the epochs that were prepared."""
        self.pair_values, self.forward.values, self.backward.values = self.epochs[epoch]

    def first_input(self, x: Tensor) -> Callable[[], tuple[Rows, ...]]:
        """What gives Q_1 X anew: one-hot features pick rows of the weights, others are aggregated."""
        own = (cheapest_rows(sp.csr_array(x.numpy().astype(np.float64))),) if self.kind == "sage" else ()
        hot = x.nonzero()
        if x.shape[1] <= FEW_FEATURES or len(hot) != len(x) or not bool((x.sum(dim=1) == 1).all()):
            pairs = (self.pair_values.numpy(), self.column.numpy(), self.offsets)
            aggregate = Bag(sp.csr_array(pairs, shape=(self.nodes, self.nodes)))  # scipy sees no shape in no pair
            return lambda: (aggregate.with_values(self.pair_values)(x), *own)
        picked = self.picked_input(hot[:, 1].numpy(), x.shape[1])
        return lambda: (picked(), *own)

    def picked_input(self, label: np.ndarray, channels: int) -> Callable[[], SparseRows]:
        picked = label[self.column.numpy()]
        order = np.argsort(picked, kind="stable")
        ends = np.cumsum(np.bincount(picked, minlength=channels))
        ones, rows = np.ones(len(picked)), self.row.numpy()
        matrix = Bag(sp.csr_array((ones, picked, self.offsets), shape=(self.nodes, channels)))
        turned = Bag(sp.csr_array((ones, rows[order], np.concatenate([[0], ends])), shape=(channels, self.nodes)))
        aggregated, into = SparseRows(matrix, turned), torch.from_numpy(order)

        def refresh() -> SparseRows:
            matrix.values, turned.values = self.pair_values, self.pair_values.index_select(0, into)
            return aggregated

        return refresh
