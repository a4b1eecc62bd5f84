"""Graph Transplant by hand: parts, bridges and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hand_graphs import context, edges_of, path, ring
from torch_geometric.data import Data

from augmenters import GraphTransplant
from augmenters.graph_transplant import lost_edges, mixed_label, per_graph_share, stubs_joined, transplanted


def mask(n: int, *nodes: int) -> np.ndarray:
    found = np.zeros(n, dtype=bool)
    found[list(nodes)] = True
    return found


class Saliency:
    """Node 0 of each graph has all the saliency; graphs that are learned are kept."""

    num_classes = 2

    def __init__(self) -> None:
        self.learned: list[Data] = []

    def saliency(self, graphs: Sequence[Data]) -> list[torch.Tensor]:
        return [torch.eye(graph.num_nodes)[0] for graph in graphs]

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[torch.Tensor]:
        self.learned += graphs
        return []


def test_two_parts_of_rings_joined_by_hand() -> None:
    first, second = ring(4, 0), ring(5, 1)
    second.x += 10
    stays = mask(4, 0, 1, 2), mask(5, 2, 3)
    assert sorted(lost_edges(first, stays[0]).tolist()) == [0, 2]  # 0-3 and 2-3 are cut
    assert sorted(lost_edges(second, stays[1]).tolist()) == [0, 1]  # 1-2 and 3-4, in new numbers
    made = transplanted((first, second), stays, np.array([[0, 2], [0, 1]]), torch.tensor([[0.5, 0.5]]), False)
    assert made.x.view(-1).tolist() == [0, 1, 2, 12, 13]
    assert edges_of(made) == {(0, 1), (1, 2), (3, 4), (0, 3), (2, 4)}


def test_bridges_restore_degrees_as_far_as_they_can() -> None:
    for seed in range(20):
        pairs = stubs_joined(np.array([0, 0, 1]), np.array([5, 6]), np.random.default_rng(seed)).T.tolist()
        assert len(pairs) == 2 and {b for _, b in pairs} == {5, 6}
    assert stubs_joined(np.array([0, 0]), np.array([7, 7]), np.random.default_rng(0)).T.tolist() == [[0, 7]]
    assert stubs_joined(np.array([], dtype=int), np.array([1]), np.random.default_rng(0)).shape == (2, 0)


def test_labels_by_saliency() -> None:
    pair = path(3, 0), path(3, 1)
    label = mixed_label(pair, (torch.tensor([0.1, 0.2]), torch.tensor([0.6])), 2)
    assert label.tolist() == [[pytest.approx(1 / 3), pytest.approx(2 / 3)]]
    assert mixed_label(pair, (torch.zeros(3), torch.zeros(1)), 2).tolist() == [[0.75, 0.25]]
    assert per_graph_share(torch.tensor([1.0, 3.0])).tolist() == [0.25, 0.75]
    assert per_graph_share(torch.zeros(4)).tolist() == [0.25] * 4


def test_parts_are_around_their_anchors_and_salient_ones_in_the_source() -> None:
    augmenter, salient = GraphTransplant(anchors=0.05, hops=3), torch.eye(20)[7]
    rng = np.random.default_rng(0)
    sizes, roots = set(), set()
    for _ in range(200):
        part = np.flatnonzero(augmenter.part(ring(20), salient, rng))
        sizes.add(len(part))
        assert len(part) <= 7  # one anchor and three hops on a ring
        roots.add(7 in part)
    assert max(sizes) == 7 and min(sizes) >= 2
    assert GraphTransplant(anchors=1.0).part(path(3), None, rng).all()


def test_a_step_learns_one_graph_for_each_and_p_zero_changes_none() -> None:
    graphs = [ring(12, 0), path(9, 1), ring(7, 1), path(1, 0)]
    for p in (0.0, 1.0):
        view, augmenter = Saliency(), GraphTransplant(p=p)
        augmenter.step(view, graphs, augmenter.draw(graphs, np.random.default_rng(3), context()))  # type: ignore[arg-type]
        assert len(view.learned) == 4
        for made in view.learned:
            assert all(j < made.num_nodes for _, j in edges_of(made)) and len(made.x) == made.num_nodes
        if p == 0:
            assert all(made is graph for made, graph in zip(view.learned, graphs, strict=True))
        else:
            soft = [made for made in view.learned if made.y.is_floating_point()]
            assert soft and all(float(made.y.sum()) == pytest.approx(1) for made in soft)


def test_policies() -> None:
    assert (GraphTransplant.when, GraphTransplant.labels, GraphTransplant().features) == ("batch", "mixed", "recompute")
