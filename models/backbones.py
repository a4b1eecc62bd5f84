"""Message-passing backbones. Every layer is followed by a ReLU; each backbone reads edge weights or rejects them."""

from __future__ import annotations

import itertools
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn import BatchNorm, GATConv, GCNConv, MessagePassing

from bench.registry import Tune, UserError, Within
from models.sparse_features import is_sparse

Width = Annotated[int, Within(1, 4096), Tune(16, 128, log=True)]
Layers = Annotated[int, Within(1, 64), Tune(2, 5)]
Dropout = Annotated[float, Within(0, 0.99), Tune(0.0, 0.5)]
Norm = Literal["none", "batch"]


class Backbone(nn.Module):
    """A stack of convolutions; subclasses define one layer and declare whether it reads edge weights.

    `norm=batch` normalizes each channel over the nodes of a step before the ReLU. With `residual`, a layer adds its
    input to its output if both have the same width.
    """

    reads_edge_weight: ClassVar[bool] = True

    def __init__(
        self,
        in_channels: int,
        width: Width = 64,
        layers: Layers = 4,
        dropout: Dropout = 0.0,
        norm: Norm = "none",
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.out_channels = width
        self.dropout, self.norm, self.residual = dropout, norm, residual
        sizes = [in_channels] + [width] * layers
        self.convs = nn.ModuleList(self.layer(a, b) for a, b in itertools.pairwise(sizes))
        # A single node cannot be normalized against others: use the running statistics.
        self.norms = nn.ModuleList(
            BatchNorm(width, allow_single_element=True) for _ in range(layers if norm == "batch" else 0)
        )

    def layer(self, in_channels: int, out_channels: int) -> nn.Module:
        """One message-passing layer, called with `(x, edge_index, edge_weight)`."""
        raise TypeError(f"{type(self).__name__} has no method `layer`; implement it")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Node embeddings after the last layer."""
        if edge_weight is not None and not self.reads_edge_weight:
            raise UserError(
                f"{type(self).__name__} ignores edge weights, which would make a weighting augmenter a no-op; "
                "use gcn, gin or sage with it"
            )
        extra = () if edge_weight is None else (edge_weight,)
        for place, conv in enumerate(self.convs):
            given, x = x, conv(x, edge_index, *extra)
            x = (self.norms[place](x) if self.norms else x).relu()
            x = nn.functional.dropout(x, self.dropout, self.training)
            if self.residual and x.shape == given.shape:
                x = x + given
        return x


class GCN(Backbone):
    """h' = D^-1/2 (A + I) D^-1/2 h W + b."""

    def layer(self, in_channels: int, out_channels: int) -> nn.Module:
        return GCNConv(in_channels, out_channels)


class GAT(Backbone):
    """Attention over the neighbors and the node itself; it cannot use edge weights."""

    reads_edge_weight = False

    def __init__(
        self,
        in_channels: int,
        width: Width = 64,
        layers: Layers = 4,
        dropout: Dropout = 0.0,
        heads: Annotated[int, Within(1, 64)] = 1,
        norm: Norm = "none",
        residual: bool = False,
    ) -> None:
        if width % heads:
            raise UserError(f"gat: width={width} is not divisible by heads={heads}; choose a multiple")
        self.heads = heads
        super().__init__(in_channels, width, layers, dropout, norm, residual)

    def layer(self, in_channels: int, out_channels: int) -> nn.Module:
        return GATConv(in_channels, out_channels // self.heads, heads=self.heads)


class WeightedSum(MessagePassing):
    """Sum over the neighbors, each multiplied by its edge weight."""

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        total: Tensor = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        return total

    def message(self, x_j: Tensor, edge_weight: Tensor | None) -> Tensor:
        return x_j if edge_weight is None else x_j * edge_weight.view(-1, 1)


class GINLayer(nn.Module):
    """MLP(h + sum_j w_ij h_j). PyG's GINConv does not support edge weights."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.sum = WeightedSum()
        self.mlp = nn.Sequential(nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        if is_sparse(x):  # much narrower after the first map, which is linear
            first, *rest = self.mlp
            assert isinstance(first, nn.Linear)
            rows = nn.functional.linear(x, first.weight)
            out: Tensor = nn.Sequential(*rest)(rows + self.sum(rows, edge_index, edge_weight) + first.bias)
            return out
        out = self.mlp(x + self.sum(x, edge_index, edge_weight))
        return out


class GIN(Backbone):
    """Graph isomorphism network with epsilon 0 and a weighted sum."""

    def layer(self, in_channels: int, out_channels: int) -> nn.Module:
        return GINLayer(in_channels, out_channels)


class SAGELayer(nn.Module):
    """W1 mean_j(h_j) + W2 h with a weighted mean. PyG's SAGEConv does not support edge weights."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.sum = WeightedSum()
        self.neighbors = nn.Linear(in_channels, out_channels)
        self.own = nn.Linear(in_channels, out_channels, bias=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        # Apply the first map to wide sparse features before the mean: both are linear, and the result is narrow.
        rows = nn.functional.linear(x, self.neighbors.weight) if is_sparse(x) else x
        total = self.sum(torch.cat([rows, rows.new_ones(rows.shape[0], 1)], dim=1), edge_index, edge_weight)
        mean = total[:, :-1] / total[:, -1:].clamp(min=torch.finfo(rows.dtype).tiny)
        near = mean + self.neighbors.bias if is_sparse(x) else self.neighbors(mean)
        out: Tensor = near + self.own(x)
        return out


class GraphSAGE(Backbone):
    """GraphSAGE with the mean aggregator."""

    def layer(self, in_channels: int, out_channels: int) -> nn.Module:
        return SAGELayer(in_channels, out_channels)
