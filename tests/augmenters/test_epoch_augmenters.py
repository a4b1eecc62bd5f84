"""DropNode, DropEdge and SoftEdge: exact counts, both directions, never from an already changed graph."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from augmenters import DropEdge, DropNode, SoftEdge


@st.composite
def graphs(draw: st.DrawFn) -> Data:
    n = draw(st.integers(1, 12))
    bits = draw(st.integers(0, 2 ** (n * (n - 1) // 2) - 1))
    pairs = [pair for k, pair in enumerate((i, j) for j in range(n) for i in range(j)) if bits >> k & 1]
    both = torch.tensor(pairs + [(j, i) for i, j in pairs], dtype=torch.long).reshape(-1, 2).T
    return Data(x=torch.arange(n).float().view(-1, 1), edge_index=both, y=torch.tensor([0]))


PROBABILITIES = st.floats(0, 1)
SEEDS = st.integers(0, 999)


@settings(max_examples=60, deadline=None)
@given(graphs(), PROBABILITIES, SEEDS)
def test_dropnode_removes_exactly_int_pn_nodes_with_their_rows(graph: Data, p: float, seed: int) -> None:
    (new,) = DropNode(p=p)([graph], np.random.default_rng(seed))
    n = graph.num_nodes
    assert new.num_nodes == len(new.x) == max(n - int(p * n), 1)
    kept = new.x.view(-1).long()  # features are the old numbers
    old = set(map(tuple, graph.edge_index.T.tolist()))
    expected = {(int(i), int(j)) for i in kept for j in kept if (int(i), int(j)) in old}
    assert set(map(tuple, kept[new.edge_index].T.tolist())) == expected


@settings(max_examples=60, deadline=None)
@given(graphs(), PROBABILITIES, SEEDS)
def test_dropedge_drops_both_directions_together_and_no_node(graph: Data, p: float, seed: int) -> None:
    (new,) = DropEdge(p=p)([graph], np.random.default_rng(seed))
    kept = set(map(tuple, new.edge_index.T.tolist()))
    assert kept <= set(map(tuple, graph.edge_index.T.tolist()))
    assert all((j, i) in kept for i, j in kept)
    assert torch.equal(new.x, graph.x)
    if p == 0:
        assert torch.equal(new.edge_index, graph.edge_index)
    if p == 1:
        assert not kept


def test_dropedge_drops_its_share_and_does_not_pile_up() -> None:
    n = 60
    pairs = torch.combinations(torch.arange(n)).T
    graph = Data(x=torch.ones(n, 1), edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), y=torch.tensor([0]))
    rng, augmenter = np.random.default_rng(0), DropEdge(p=0.25)
    shares = [augmenter([graph], rng)[0].num_edges / graph.num_edges for _ in range(30)]
    assert all(0.7 < share < 0.8 for share in shares)
    assert len(set(shares)) > 1


@settings(max_examples=60, deadline=None)
@given(graphs(), PROBABILITIES, SEEDS)
def test_softedge_weighs_a_share_of_the_edges_alike_in_both_directions(graph: Data, p: float, seed: int) -> None:
    (new,) = SoftEdge(p=p)([graph], np.random.default_rng(seed))
    assert torch.equal(new.edge_index, graph.edge_index)
    weights = {(i, j): w for (i, j), w in zip(new.edge_index.T.tolist(), new.edge_weight.tolist(), strict=True)}
    assert all(weights[j, i] == w and 0 <= w <= 1 for (i, j), w in weights.items())
    assert sum(w != 1 for w in weights.values()) == 2 * round(p * graph.num_edges / 2)


def test_edge_attributes_and_weights_follow_their_edges() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graph = Data(x=torch.ones(3, 1), edge_index=edges, y=torch.tensor([0]))
    graph.edge_weight, graph.edge_attr = torch.tensor([1.0, 1.0, 2.0, 2.0]), torch.tensor([[1], [1], [2], [2]])
    for seed in range(10):
        for augmenter in (DropEdge(p=0.5), DropNode(p=0.34)):
            (new,) = augmenter([graph], np.random.default_rng(seed))
            assert torch.equal(new.edge_weight, new.edge_attr.view(-1).float())
            assert len(new.edge_weight) == new.num_edges
    (soft,) = SoftEdge(p=1.0)([graph], np.random.default_rng(0))
    assert ((soft.edge_weight / graph.edge_weight) < 1).all()  # a given weight is multiplied, not replaced


@pytest.mark.parametrize("augmenter", [DropNode(), DropEdge(), SoftEdge()])
def test_defaults_and_policies(augmenter: DropNode | DropEdge | SoftEdge) -> None:
    assert (augmenter.p, augmenter.when, augmenter.mode, augmenter.labels) == (0.25, "epoch", "replace", "kept")
    assert augmenter.weighted == isinstance(augmenter, SoftEdge)


def test_a_draw_is_fresh_each_time() -> None:
    ring = torch.arange(40)
    edges = torch.cat([torch.stack([ring, (ring + 1) % 40]), torch.stack([(ring + 1) % 40, ring])], dim=1)
    graph = Data(x=torch.ones(40, 1), edge_index=edges, y=torch.tensor([0]))
    for augmenter in (DropNode(), DropEdge(), SoftEdge()):
        rng = np.random.default_rng(0)
        first, second = (augmenter([copy.copy(graph)], rng)[0] for _ in range(2))
        assert first.edge_index.tolist() != second.edge_index.tolist() or not torch.equal(
            first.edge_weight, second.edge_weight
        )
