"""Readouts: from node embeddings to one row per graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import Set2Set, global_add_pool, global_max_pool, global_mean_pool

from bench.registry import Tune, Within


class Pooled(NamedTuple):
    """One row per graph and, optionally, an auxiliary loss (a scalar)."""

    rows: Tensor
    loss: Tensor | None = None


class Readout(nn.Module):
    """Base class of all readouts. It is constructed with the width of the node embeddings and declares its output
    width.

    `forward` gets the node embeddings, the edges that the backbone used and, in `batch`, the graph of each node. It
    returns one row per graph, or `Pooled(rows, loss)`. The loss is added to the classification loss (a sum over graphs)
    during training and has no effect on predictions.
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.out_channels = in_channels

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Tensor | Pooled:
        raise TypeError(f"{type(self).__name__} has no method `forward`; implement it")


class PlainReadout(Readout):
    """Reduces each channel over the nodes of a graph; ignores the edges."""

    reduce: ClassVar[Callable[[Tensor, Tensor, int], Tensor]]

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Tensor:
        return type(self).reduce(x, batch, num_graphs)


class MeanReadout(PlainReadout):
    """The mean over the nodes of each graph."""

    reduce = staticmethod(global_mean_pool)


class AddReadout(PlainReadout):
    """The sum over the nodes of each graph."""

    reduce = staticmethod(global_add_pool)


class MaxReadout(PlainReadout):
    """The maximum over the nodes of each graph."""

    reduce = staticmethod(global_max_pool)


class MeanMaxReadout(Readout):
    """Mean and maximum of each channel, concatenated."""

    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.out_channels = 2 * in_channels

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Tensor:
        return torch.cat([global_mean_pool(x, batch, num_graphs), global_max_pool(x, batch, num_graphs)], dim=1)


class Set2SetReadout(Readout):
    """Repeated attention over the nodes, controlled by a recurrent network (Vinyals et al., 2016)."""

    def __init__(self, in_channels: int, steps: Annotated[int, Within(1, 64), Tune(1, 6)] = 3) -> None:
        super().__init__(in_channels)
        self.attention = Set2Set(in_channels, processing_steps=steps)
        self.out_channels = 2 * in_channels

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Tensor:
        rows: Tensor = self.attention(x, batch, dim_size=num_graphs)
        return rows
