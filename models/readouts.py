"""Readouts: from node embeddings to one row per graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool


class Pooled(NamedTuple):
    """One row per graph and, from a readout that has one, its auxiliary loss: a single number."""

    rows: Tensor
    loss: Tensor | None = None


class Readout(nn.Module):
    """Base of all readouts. It is built with the width of the node embeddings and says how wide its rows are.

    `forward` gets the node embeddings, the edges that the backbone saw and, in `batch`, the graph of each node. It
    returns one row per graph, or `Pooled(rows, loss)`; the loss is added to that of the labels (a sum over graphs)
    while training, and never counts in a prediction.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.out_channels = in_channels

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Tensor | Pooled:
        raise TypeError(f"{type(self).__name__} does not say how it pools; give it a method `forward`")


class PlainReadout(Readout):
    """Reduces each channel over the nodes of a graph and looks at no edge."""

    reduce: ClassVar[Callable[[Tensor, Tensor, int], Tensor]]

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Tensor:
        return type(self).reduce(x, batch, num_graphs)


class MeanReadout(PlainReadout):
    reduce = staticmethod(global_mean_pool)


class AddReadout(PlainReadout):
    reduce = staticmethod(global_add_pool)


class MaxReadout(PlainReadout):
    reduce = staticmethod(global_max_pool)
