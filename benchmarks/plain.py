"""The simplest implementation: a GCN in plain PyG, one batch, Adam. The yardstick of `make perf`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_mean_pool
from torch_geometric.utils import dropout_edge

METHODS = ("none", "dropedge")


class PlainGCN(nn.Module):
    def __init__(self, channels: int, classes: int, width: int = 64, layers: int = 4, relu: bool = False) -> None:
        super().__init__()
        sizes = [channels] + [width] * layers
        self.convs = nn.ModuleList(GCNConv(a, b) for a, b in itertools.pairwise(sizes))
        last = [nn.ReLU()] if relu else []
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes), *last)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        out: Tensor = self.head(global_mean_pool(x, batch))
        return out


def train_plainly(
    graphs: Sequence[Data], classes: int, method: str, epochs: int, lr: float = 0.01, relu: bool = False
) -> None:
    """Train from scratch for so many full-batch epochs; `relu`: also put a ReLU on the logits."""
    model = PlainGCN(graphs[0].num_node_features, classes, relu=relu)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    batch = Batch.from_data_list(list(graphs))
    for _ in range(epochs):
        edges = batch.edge_index
        if method == "dropedge":
            edges, _ = dropout_edge(edges, p=0.25, force_undirected=True)
        optimizer.zero_grad()
        logits = model(batch.x, edges, batch.batch)
        loss = nn.functional.cross_entropy(logits, batch.y, reduction="sum")
        loss.backward()
        optimizer.step()
        loss.item()
