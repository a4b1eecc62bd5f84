"""Readouts that assign nodes to learned clusters before pooling: DiffPool and MinCut.

They compute the same as PyG's `dense_diff_pool` and `dense_mincut_pool`. Those need the adjacency as a dense matrix,
which dominates time and memory for graphs with thousands of nodes. Here only sums over edges and products of width
`clusters` are computed, so the cost grows with nodes and edges.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn
from torch_geometric.nn import DenseGraphConv, DenseSAGEConv

from bench.registry import Tune, Within
from models.readouts import Pooled, Readout

Clusters = Annotated[int, Within(2, 1000), Tune(4, 32, log=True)]
SURELY = 1e-15  # added to a probability before the logarithm, and to the square root of a degree, as in PyG


@dataclass(frozen=True)
class Edges:
    """The edges of several non-empty graphs; the nodes of a graph are contiguous, and no edge is listed twice."""

    ends: Tensor
    weights: Tensor
    graph: Tensor  # of each node
    sizes: Tensor  # number of nodes of each graph

    def from_neighbors(self, rows: Tensor) -> Tensor:
        """The adjacency matrix times rows."""
        weighted = rows[self.ends[1]] * self.weights.view(-1, 1)
        return torch.zeros_like(rows).index_add(0, self.ends[0], weighted)

    def degrees(self) -> Tensor:
        return self.weights.new_zeros(len(self.graph)).index_add(0, self.ends[0], self.weights)

    def sum_over_nodes(self, values: Tensor) -> Tensor:
        return values.new_zeros(len(self.sizes)).index_add(0, self.graph, values)

    def sum_over_edges(self, values: Tensor) -> Tensor:
        return values.new_zeros(len(self.sizes)).index_add(0, self.graph[self.ends[0]], values)

    def products(self, left: Tensor, *right: Tensor) -> tuple[Tensor, ...]:
        """For each graph, its rows of `left`, transposed, times its rows of each other table."""
        sizes = self.sizes.tolist()
        parts = zip(left.split(sizes), torch.cat(right, dim=1).split(sizes), strict=True)
        return torch.stack([one.t() @ other for one, other in parts]).split([table.shape[1] for table in right], dim=2)


class ClusterReadout(Readout):
    """Soft node clusters per graph, one dense layer on the graph of clusters, and the mean over clusters.

    The embedding and loss of a graph do not depend on the other graphs in the batch. The auxiliary loss is summed over
    graphs, like the classification loss.
    """

    def __init__(self, in_channels: int, clusters: int) -> None:
        super().__init__(in_channels)
        self.clusters = clusters

    @abstractmethod
    def gather(self, x: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        """The embeddings of each graph's clusters (graphs x clusters x channels), and the auxiliary loss."""

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Pooled:
        """A graph whose nodes were all dropped gets a row of zeros."""
        if bool((batch.diff() < 0).any()):  # not ordered as in a PyG batch
            order = batch.argsort(stable=True)
            x, batch, edge_index = x[order], batch[order], order.argsort()[edge_index]
        sizes = torch.bincount(batch, minlength=num_graphs)
        present = sizes > 0
        places = torch.cumsum(present, 0) - 1
        weights = x.new_ones(edge_index.shape[1]) if edge_weight is None else edge_weight.view(-1)
        clusters, losses = self.gather(x, Edges(edge_index, weights, places[batch], sizes[present]))
        rows = x.new_zeros(num_graphs, self.out_channels)
        return Pooled(rows.index_put((present,), clusters.mean(dim=1)), losses.sum())


class DiffPool(ClusterReadout):
    """Clusters from a layer that sees the edges; link prediction and entropy losses (Ying et al., 2018)."""

    def __init__(self, in_channels: int, clusters: Clusters = 10) -> None:
        super().__init__(in_channels, clusters)
        self.assign = DenseSAGEConv(in_channels, clusters)
        self.embed = DenseSAGEConv(in_channels, in_channels)
        self.after = DenseSAGEConv(in_channels, in_channels)

    def gather(self, x: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        near = edges.from_neighbors(x) / edges.degrees().clamp(min=1).view(-1, 1)
        share = (self.assign.lin_rel(near) + self.assign.lin_root(x)).softmax(dim=1)
        embedding = (self.embed.lin_rel(near) + self.embed.lin_root(x)).relu()
        clusters, between, overlap = edges.products(share, embedding, edges.from_neighbors(share), share)
        # The squared norm of A - S S^T. It can only become negative by rounding, if S S^T equals A.
        apart = edges.sum_over_edges(edges.weights**2) - 2 * traces(between) + (overlap**2).sum(dim=(1, 2))
        link = apart.clamp(min=SURELY).sqrt() / edges.sizes**2
        doubt = edges.sum_over_nodes((-share * (share + SURELY).log()).sum(dim=1)) / edges.sizes
        return self.after(clusters, between).relu(), link + doubt


class MinCut(ClusterReadout):
    """Clusters from each node's embedding; relaxed minimum cut and orthogonality losses (Bianchi et al., 2020)."""

    def __init__(self, in_channels: int, clusters: Clusters = 10) -> None:
        super().__init__(in_channels, clusters)
        self.assign = nn.Linear(in_channels, clusters)
        self.after = DenseGraphConv(in_channels, in_channels)

    def gather(self, x: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
        share = self.assign(x).softmax(dim=1)
        clusters, between, overlap = edges.products(share, x, edges.from_neighbors(share), share)
        volume = edges.sum_over_nodes(edges.degrees() * (share**2).sum(dim=1))
        # Without edges there is nothing to cut; the cut share would be 0 / 0.
        cut = torch.where(volume > 0, -traces(between) / torch.where(volume > 0, volume, 1), 0)
        even = torch.eye(self.clusters, dtype=x.dtype, device=x.device)
        unit = overlap / overlap.norm(dim=(1, 2), keepdim=True)
        orthogonality = (unit - even / even.norm()).norm(dim=(1, 2))
        return self.after(clusters, normalized(between * (1 - even))).relu(), cut + orthogonality


def traces(tables: Tensor) -> Tensor:
    return tables.diagonal(dim1=1, dim2=2).sum(dim=1)


def normalized(between: Tensor) -> Tensor:
    """Divide by the square roots of both clusters' degrees.

    If no edge connects a cluster to another, the gradient of the square root would be infinite; such a graph gets none.
    """
    joined = (between.sum(dim=2) > 0).all(dim=1).view(-1, 1, 1)
    between = torch.where(joined, between, between.detach())
    root = between.sum(dim=2).sqrt() + SURELY
    return between / root.unsqueeze(1) / root.unsqueeze(2)
