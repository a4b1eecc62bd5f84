"""S-Mixup by hand, with alignments written down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hand_graphs import context, edges_of, path, ring
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters import SMixup, s_mixup
from augmenters.s_mixup import mixed_graph, soft_alignment
from models.graph_matching import GraphMatchingNetwork


def test_columns_of_an_alignment_are_shares_in_the_first_graph() -> None:
    first, second = torch.eye(3), torch.tensor([[0.0, 5.0, 0.0], [1.0, 1.0, 0.0]])
    match = soft_alignment(first, second, 0.01)
    assert match.shape == (3, 2) and torch.allclose(match.sum(dim=0), torch.ones(2))
    assert match[:, 0].tolist() == pytest.approx([0, 1, 0], abs=1e-6)
    assert match[:, 1].tolist() == pytest.approx([0.5, 0.5, 0], abs=1e-6)
    assert soft_alignment(first, second, 1e6)[:, 0].tolist() == pytest.approx([1 / 3] * 3, abs=1e-5)


def test_a_hard_alignment_by_hand() -> None:
    line, pair = path(3, 0), path(2, 1)
    match = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])  # the pair's nodes are nodes 0 and 2 of the path
    made = mixed_graph(line, pair, match, 0.75, 0.1, 2)
    weights = dict(zip(map(tuple, made.edge_index.T.tolist()), made.edge_weight.tolist(), strict=True))
    assert weights == {(0, 1): 0.75, (1, 0): 0.75, (1, 2): 0.75, (2, 1): 0.75, (0, 2): 0.25, (2, 0): 0.25}
    assert made.x.view(-1).tolist() == [0.75 * 0 + 0.25 * 0, 0.75 * 1, 0.75 * 2 + 0.25 * 1]
    assert made.y.tolist() == [[0.75, 0.25]]
    assert edges_of(mixed_graph(line, pair, match, 0.75, 0.5, 2)) == {(0, 1), (1, 2)}  # below eps


def test_two_nodes_on_one_make_no_self_loop() -> None:
    made = mixed_graph(path(2, 0), path(2, 1), torch.tensor([[1.0, 1.0], [0.0, 0.0]]), 0.5, 0.0, 2)
    assert edges_of(made) == {(0, 1)} and made.edge_weight.tolist() == [0.5, 0.5]


def test_the_first_graph_has_the_larger_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s_mixup, "EPOCHS", 2)
    drawn = SMixup(alpha=1.0, count=10).draw([ring(5), path(4, 1)], np.random.default_rng(0), context())
    assert all(share >= 0.5 for share in drawn.shares) and len(set(drawn.shares)) == len(drawn.pairs) == 21
    made = SMixup()([ring(5), path(4, 1)], np.random.default_rng(0), context())
    assert {one.num_nodes for one in made} <= {4, 5} and all("edge_weight" in one for one in made)


def test_policies() -> None:
    assert (SMixup.when, SMixup.mode, SMixup.labels, SMixup.weighted) == ("offline", "append", "mixed", True)


def test_the_matching_network_sees_the_labeled_graphs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    fit = s_mixup.fit_matching_network

    def watched(graphs: Sequence[Data], stream: Generator, width: int, epochs: int) -> GraphMatchingNetwork:
        seen.append(len(graphs))
        return fit(graphs, stream, width, epochs)

    monkeypatch.setattr(s_mixup, "fit_matching_network", watched)
    monkeypatch.setattr(s_mixup, "MATCHING_EPOCHS", 2)
    graphs = [ring(5), path(4, 1), ring(6), path(5, 1)]
    shared = context()
    one = SMixup(matcher="gmn", width=8)(graphs, np.random.default_rng(0), shared)
    two = SMixup(matcher="gmn", width=8)(graphs, np.random.default_rng(0), shared)
    assert seen == [4]  # once for the trial
    assert all(torch.equal(a.edge_weight, b.edge_weight) for a, b in zip(one, two, strict=True))
    assert {made.num_nodes for made in one} <= {4, 5, 6} and all(edges_of(made) for made in one)
