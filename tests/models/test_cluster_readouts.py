"""Readouts with clusters, attention or two reductions: by hand, and as properties that hold for every readout."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import dense_diff_pool, dense_mincut_pool
from torch_geometric.utils import erdos_renyi_graph, to_dense_adj

from models import READOUTS
from models.cluster_readouts import ClusterReadout, DiffPool, MinCut
from models.readouts import MeanMaxReadout, Pooled, Readout

NAMES = list(READOUTS.entries())
WIDTH = 6


def some_graphs() -> list[Data]:
    """One without an edge, one of a single node."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return [
            Data(x=torch.rand(n, WIDTH), edge_index=erdos_renyi_graph(n, p), num_nodes=n)
            for n, p in ((7, 0.5), (4, 0.0), (1, 0.0), (9, 0.3))
        ]


def made(name: str) -> Readout:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return READOUTS.create(name, in_channels=WIDTH)


def pooled(readout: Readout, graphs: list[Data]) -> Pooled:
    batch = Batch.from_data_list(graphs)
    found = readout(batch.x, batch.edge_index, batch.get("edge_weight"), batch.batch, batch.num_graphs)
    return found if isinstance(found, Pooled) else Pooled(found)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_as_wide_as_said_and_each_graph_is_pooled_alone(name: str) -> None:
    readout, graphs = made(name), some_graphs()
    together = pooled(readout, graphs)
    assert together.rows.shape == (len(graphs), readout.out_channels)
    alone = [pooled(readout, [graph]) for graph in graphs]
    torch.testing.assert_close(torch.cat([one.rows for one in alone]), together.rows)
    assert (together.loss is not None) == (name in ("diffpool", "mincut"))
    if together.loss is not None:  # a sum over graphs, as the loss of the labels is
        torch.testing.assert_close(sum(one.loss for one in alone if one.loss is not None), together.loss)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_nodes_does_not_matter(name: str) -> None:
    readout, graphs = made(name), some_graphs()
    shuffled = []
    for graph in graphs:
        order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(2))
        shuffled.append(Data(x=graph.x[order], edge_index=torch.argsort(order)[graph.edge_index]))
    one, other = pooled(readout, graphs), pooled(readout, shuffled)
    torch.testing.assert_close(one.rows, other.rows)
    if one.loss is not None:
        torch.testing.assert_close(one.loss, other.loss)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_numbers_for_single_nodes_and_graphs_without_edges(name: str) -> None:
    readout, graphs = made(name), some_graphs()
    for graph in graphs:
        graph.x.requires_grad_()
    found = pooled(readout, graphs)
    (found.rows.sum() + (0 if found.loss is None else found.loss)).backward()
    tensors: list[Tensor] = [*readout.parameters(), *(graph.x for graph in graphs)]
    assert all(tensor.grad is not None and bool(tensor.grad.isfinite().all()) for tensor in tensors)


def test_mean_and_max_side_by_side() -> None:
    rows = MeanMaxReadout(2)(torch.tensor([[1.0, 4.0], [3.0, 0.0]]), torch.empty(2, 0), None, torch.tensor([0, 0]), 1)
    assert rows.tolist() == [[2, 2, 3, 4]]


def densely(readout: Readout, graph: Data) -> tuple[Tensor, Tensor]:
    """The same of one graph by PyG's dense layers: the row and the auxiliary loss."""
    table = to_dense_adj(graph.edge_index, edge_attr=graph.edge_weight, max_num_nodes=graph.num_nodes)[0]
    if isinstance(readout, DiffPool):
        assignment, embedding = readout.assign(graph.x, table), readout.embed(graph.x, table).relu()
        clusters, between, *losses = dense_diff_pool(embedding, table, assignment)
        return readout.after(clusters, between).relu()[0].mean(dim=0), losses[0] + losses[1]
    assert isinstance(readout, MinCut)
    clusters, between, *losses = dense_mincut_pool(graph.x, table, readout.assign(graph.x))
    return readout.after(clusters, between).relu()[0].mean(dim=0), losses[0] + losses[1]


@pytest.mark.parametrize("name", ["diffpool", "mincut"])
def test_rows_losses_and_gradients_are_those_of_the_dense_layers_of_pyg(name: str) -> None:
    """With weighted edges that come in any order, and that differ by direction."""
    readout, graphs = made(name).double(), []
    draw = torch.Generator().manual_seed(3)
    for n in (5, 12, 8):
        pairs = (torch.rand(n, n, generator=draw) < 0.6).fill_diagonal_(False).nonzero().t()
        pairs = pairs[:, torch.randperm(pairs.shape[1], generator=draw)]
        x = torch.rand(n, WIDTH, generator=draw, dtype=torch.double)
        weight = torch.rand(pairs.shape[1], generator=draw, dtype=torch.double)
        graphs.append(Data(x=x, edge_index=pairs, edge_weight=weight))
    found = pooled(readout, graphs)
    expected = [densely(readout, graph) for graph in graphs]
    torch.testing.assert_close(found.rows, torch.stack([row for row, _ in expected]))
    total = torch.stack([loss for _, loss in expected]).sum()
    torch.testing.assert_close(found.loss, total)
    weights = list(readout.parameters())
    ours = torch.autograd.grad(found.rows.square().sum() + found.loss, weights)
    theirs = torch.autograd.grad(sum(row.square().sum() for row, _ in expected) + total, weights)
    torch.testing.assert_close(ours, theirs)


def test_losses_of_two_triangles_put_into_two_clusters_by_hand() -> None:
    """Each triangle its own cluster: nothing is cut, clusters are orthogonal, no doubt is left; links lack loops."""
    corners = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    edges = torch.cat([corners, corners + 3], dim=1)
    x = torch.tensor([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3)
    batch = torch.zeros(6, dtype=torch.long)
    cut = MinCut(2, clusters=2)
    sure = 1000 * torch.eye(2)
    with torch.no_grad():
        cut.assign.weight.copy_(sure)
        cut.assign.bias.zero_()
    found = cut(x, edges, None, batch, 1)
    assert found.loss.item() == pytest.approx(-1, abs=1e-5)
    (found.rows.sum() + found.loss).backward()  # no edge joins the clusters
    assert all(bool(parameter.grad.isfinite().all()) for parameter in cut.parameters() if parameter.grad is not None)
    links = DiffPool(2, clusters=2)
    with torch.no_grad():
        for name, parameter in links.assign.named_parameters():
            parameter.copy_(sure) if name == "lin_root.weight" else parameter.zero_()
    # S S^T joins each triangle's nodes with each other and with themselves: six ones too many of 36 entries
    assert links(x, edges, None, batch, 1).loss.item() == pytest.approx(6**0.5 / 36, abs=1e-5)


def test_a_graph_whose_nodes_were_all_dropped_is_a_row_of_zeros() -> None:
    readout = made("mincut")
    assert isinstance(readout, ClusterReadout)
    rows = readout(torch.rand(2, WIDTH), torch.empty(2, 0, dtype=torch.long), None, torch.tensor([0, 0]), 2).rows
    assert not rows[1].any()
