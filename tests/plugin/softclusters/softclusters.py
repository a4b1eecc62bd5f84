"""Pool nodes into soft clusters, and ask that edges join nodes of one cluster."""

from typing import Annotated

import torch
from torch_geometric.nn import global_mean_pool

from bench.registry import Tune, Within
from models.readouts import Pooled, Readout


class SoftClusters(Readout):
    def __init__(self, in_channels: int, clusters: Annotated[int, Within(1, 64), Tune(2, 8)] = 3) -> None:
        super().__init__(in_channels)
        self.out_channels = clusters * in_channels
        self.assign = torch.nn.Linear(in_channels, clusters)

    def forward(self, x, edge_index, edge_weight, batch, num_graphs):
        shares = self.assign(x).softmax(dim=1)
        rows = (shares.unsqueeze(2) * x.unsqueeze(1)).flatten(1)
        apart = 1 - (shares[edge_index[0]] * shares[edge_index[1]]).sum(dim=1)
        return Pooled(global_mean_pool(rows, batch, num_graphs), apart.sum() / max(1, len(apart)))
