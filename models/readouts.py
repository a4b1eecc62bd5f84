"""Readouts: node embeddings to one row a graph."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool


class Readout(nn.Module):
    """Base of all readouts: `readout(x, batch, num_graphs)` with `batch` the graph of each node."""

    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        raise TypeError(f"{type(self).__name__} does not say how it pools; give it a method `forward`")


class MeanReadout(Readout):
    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        return global_mean_pool(x, batch, num_graphs)


class AddReadout(Readout):
    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        return global_add_pool(x, batch, num_graphs)


class MaxReadout(Readout):
    def forward(self, x: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        return global_max_pool(x, batch, num_graphs)
