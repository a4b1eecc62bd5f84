"""Readouts that gather nodes into learned clusters before they pool: DiffPool and MinCut, with PyG's dense layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated

import torch
from torch import Tensor, nn
from torch_geometric.nn import DenseGraphConv, DenseSAGEConv, dense_diff_pool, dense_mincut_pool

from bench.registry import Tune, Within
from models.readouts import Pooled, Readout

Clusters = Annotated[int, Within(2, 1000), Tune(4, 32, log=True)]


class ClusterReadout(Readout):
    """Soft clusters of each graph's nodes, one dense layer on the graph of clusters, and the mean over clusters.

    Graphs are gathered one by one. Padded to a common size they would take the square of the largest one's nodes each,
    and DiffPool's link loss would depend on which graphs share a batch. The auxiliary loss is summed over graphs, as
    the loss of the labels is.
    """

    def __init__(self, in_channels: int, clusters: int) -> None:
        super().__init__(in_channels)
        self.clusters = clusters

    @abstractmethod
    def gather(self, x: Tensor, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        """The embeddings of one graph's clusters, and its auxiliary loss."""

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
    ) -> Pooled:
        rows, losses = [], [x.new_zeros(())]
        for nodes, adjacency in graphs_of(x, edge_index, edge_weight, batch, num_graphs):
            if len(nodes):
                clusters, loss = self.gather(nodes, adjacency)
                rows.append(clusters.mean(dim=0))
                losses.append(loss)
            else:  # every node was dropped
                rows.append(x.new_zeros(self.out_channels))
        return Pooled(torch.stack(rows), torch.stack(losses).sum())


class DiffPool(ClusterReadout):
    """Clusters from a layer that sees the edges; link prediction and entropy losses (Ying et al., 2018)."""

    def __init__(self, in_channels: int, clusters: Clusters = 10) -> None:
        super().__init__(in_channels, clusters)
        self.assign = DenseSAGEConv(in_channels, clusters)
        self.embed = DenseSAGEConv(in_channels, in_channels)
        self.after = DenseSAGEConv(in_channels, in_channels)

    def gather(self, x: Tensor, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        assignment, embedding = self.assign(x, adjacency), self.embed(x, adjacency).relu()
        clusters, between, link, entropy = dense_diff_pool(embedding, adjacency, assignment)
        return self.after(clusters, between).relu()[0], link + entropy


class MinCut(ClusterReadout):
    """Clusters from each node's embedding; relaxed minimum cut and orthogonality losses (Bianchi et al., 2020)."""

    def __init__(self, in_channels: int, clusters: Clusters = 10) -> None:
        super().__init__(in_channels, clusters)
        self.assign = nn.Linear(in_channels, clusters)
        self.after = DenseGraphConv(in_channels, in_channels)

    def gather(self, x: Tensor, adjacency: Tensor) -> tuple[Tensor, Tensor]:
        clusters, between, cut, orthogonality = dense_mincut_pool(x, adjacency, self.assign(x))
        # Without an edge there is nothing to cut, and the share of the volume that is cut would be 0 / 0. Where no edge
        # joins a cluster to another, the gradient of the square root of that degree would be infinite.
        loss = cut + orthogonality if bool(adjacency.any()) else orthogonality
        between = between if bool((between.sum(dim=-1) > 0).all()) else between.detach()
        return self.after(clusters, between).relu()[0], loss


def graphs_of(
    x: Tensor, edge_index: Tensor, edge_weight: Tensor | None, batch: Tensor, num_graphs: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Each graph of a batch: its nodes' rows and its dense adjacency, weighted where edges have weights."""
    nodes_in_order = torch.argsort(batch, stable=True)
    place = torch.argsort(nodes_in_order)
    owner = batch[edge_index[0]]
    order = torch.argsort(owner, stable=True)
    sizes = torch.bincount(batch, minlength=num_graphs)
    starts = torch.cumsum(sizes, 0) - sizes
    edges = (place[edge_index] - starts[owner])[:, order].split(
        torch.bincount(owner, minlength=num_graphs).tolist(), dim=1
    )
    weight = x.new_ones(len(order)) if edge_weight is None else edge_weight.view(-1)[order]
    weights = weight.split([part.shape[1] for part in edges])
    for nodes, ends, values in zip(x[nodes_in_order].split(sizes.tolist()), edges, weights, strict=True):
        empty = x.new_zeros(len(nodes), len(nodes))
        yield nodes, empty.index_put((ends[0], ends[1]), values, accumulate=True)
