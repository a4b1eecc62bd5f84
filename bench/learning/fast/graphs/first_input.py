"""The first layer's input, Q_1 X, if the values of Q_1 change in each epoch."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.learning.fast.graphs.pattern import Pattern
from bench.learning.fast.ops.product import Bag, Rows, SparseRows
from models.sparse_features import is_sparse

FEW_LABELS = 16  # up to this number, aggregating the features costs less than selecting rows of the weights


class FirstInput(Protocol):
    """Q_1 X, or an object that multiplies like it, from the values of the pairs: pairs x epochs, one row per epoch."""

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None: ...

    def use(self, epoch: int) -> Rows: ...


class AnyFeatures:
    """Features that are aggregated in each epoch."""

    def __init__(self, pattern: Pattern, x: Tensor) -> None:
        self.aggregate, self.x = Bag(pattern.matrix()), x

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None:
        self.values = by_epoch

    def use(self, epoch: int) -> Tensor:
        return self.aggregate.with_values(self.values[epoch])(self.x)


class FewLabels:
    """One-hot features with few channels: values of the neighbors per label, summed for all epochs at once."""

    def __init__(self, pattern: Pattern, label: np.ndarray, channels: int) -> None:
        self.shape, places = (pattern.nodes, channels), pattern.nodes * channels
        order, offsets = grouped(pattern.row * channels + label[pattern.column], places)
        self.add_up = Bag(sp.csr_array((np.ones(len(order)), order, offsets), shape=(places, len(order))))

    def prepare(self, pairs: Tensor, by_epoch: Tensor) -> None:
        self.rows = self.add_up(pairs).t().contiguous().view(-1, *self.shape)

    def use(self, epoch: int) -> Tensor:
        return self.rows[epoch]


class ManyLabels:
    """One-hot features with many channels: the values weight the selected rows of the weights."""

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
    """The positions of each key, grouped by key, and the start of each group."""
    return np.argsort(keys, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))])


def first_input(pattern: Pattern, x: Tensor) -> FirstInput:
    """The cheapest representation of the first layer's input."""
    if is_sparse(x):
        column = x.columns_of_ones()
        return AnyFeatures(pattern, x.dense()) if column is None else ManyLabels(pattern, column, x.shape[1])
    if not bool(((x != 0).sum(dim=1) == 1).all()) or not bool((x.sum(dim=1) == 1).all()):
        return AnyFeatures(pattern, x)
    labels = FewLabels if x.shape[1] <= FEW_LABELS else ManyLabels
    return labels(pattern, x.argmax(dim=1).numpy(), x.shape[1])
