"""Graphs that a per-epoch augmenter thins out or weighs: the pattern stays, only its values are made anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from bench.learning.fast.graphs.aggregation import Kind
from bench.learning.fast.graphs.joined import NotFast, edge_list
from bench.learning.fast.ops.product import (
    Bag,
    BothWays,
    Direction,
    Rows,
    SparseRows,
    cheapest_rows,
    numbered,
    transpose,
)

TINY = torch.finfo(torch.float32).tiny
FEW_LABELS = 16  # up to this number, aggregating the features costs less than picking rows of the weights


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

    def __init__(self, kind: Kind, pattern: Pattern, x: Tensor) -> None:
        self.kind, self.nodes, pairs = kind, pattern.nodes, len(pattern.row)
        self.row, self.column = torch.from_numpy(pattern.row), torch.from_numpy(pattern.column)
        self.first = first_input(pattern, x)
        self.own = (cheapest_rows(sp.csr_array(x.numpy().astype(np.float64))),) if kind == "sage" else ()
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
        by_epoch = values.t().contiguous()
        self.forward_values = by_epoch.index_select(1, self.forward_order)
        self.backward_values = by_epoch.index_select(1, self.backward_order)
        self.first.prepare(pairs, by_epoch[:, :-1])

    def use(self, epoch: int) -> tuple[Rows, ...]:
        """Take the values of one of the epochs that were prepared; returns the first layer's input with them."""
        self.forward.values, self.backward.values = self.forward_values[epoch], self.backward_values[epoch]
        return self.first.use(epoch), *self.own


class FirstInput(Protocol):
    """Q_1 X, or what multiplies like it, from the values of the pairs: pairs x epochs, and with a row an epoch."""

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None: ...

    def use(self, epoch: int) -> Rows: ...


class AnyFeatures:
    """Aggregated each epoch."""

    def __init__(self, pattern: Pattern, x: Tensor) -> None:
        self.aggregate, self.x = Bag(pattern.matrix()), x

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None:
        self.values = by_epoch

    def use(self, epoch: int) -> Tensor:
        return self.aggregate.with_values(self.values[epoch])(self.x)


class FewLabels:
    """One-hot features with few channels: values of the neighbours with a label, added up for all epochs at once."""

    def __init__(self, pattern: Pattern, label: np.ndarray, channels: int) -> None:
        self.shape, places = (pattern.nodes, channels), pattern.nodes * channels
        order, offsets = grouped(pattern.row * channels + label[pattern.column], places)
        self.add_up = Bag(sp.csr_array((np.ones(len(order)), order, offsets), shape=(places, len(order))))

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None:
        self.rows = self.add_up(pairs).t().contiguous().view(-1, *self.shape)

    def use(self, epoch: int) -> Tensor:
        return self.rows[epoch]


class ManyLabels:
    """One-hot features with many channels: the values weigh the rows of the weights that they pick."""

    def __init__(self, pattern: Pattern, label: np.ndarray, channels: int) -> None:
        picked = label[pattern.column]
        order, offsets = grouped(picked, channels)
        ones, rows = np.ones(len(picked)), pattern.row[order]
        self.order = torch.from_numpy(order)
        self.rows = SparseRows(
            Bag(sp.csr_array((ones, picked, pattern.offsets), shape=(pattern.nodes, channels))),
            Bag(sp.csr_array((ones, rows, offsets), shape=(channels, pattern.nodes))),
        )

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None:
        self.values, self.turned_values = by_epoch, by_epoch.index_select(1, self.order)

    def use(self, epoch: int) -> SparseRows:
        self.rows.matrix.values, self.rows.transposed.values = self.values[epoch], self.turned_values[epoch]
        return self.rows


def grouped(keys: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of each key among the keys, key after key, and where each one's begin."""
    return np.argsort(keys, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))])


def first_input(pattern: Pattern, x: Tensor) -> FirstInput:
    """The cheapest way to the first layer's input."""
    if not bool(((x != 0).sum(dim=1) == 1).all()) or not bool((x.sum(dim=1) == 1).all()):
        return AnyFeatures(pattern, x)
    labels = FewLabels if x.shape[1] <= FEW_LABELS else ManyLabels
    return labels(pattern, x.argmax(dim=1).numpy(), x.shape[1])
