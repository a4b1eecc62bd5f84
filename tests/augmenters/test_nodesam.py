"""NodeSam by hand: halves, merged ends, and the neighbors that join both halves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import complete, edges_of, graph, path, ring

from augmenters import NodeSam
from augmenters.functional import EdgeNumbers
from augmenters.joined import JoinedGraphs
from augmenters.nodesam import Split, joint_neighbors, merge_edges, split_nodes


def test_triangles_of_known_graphs() -> None:
    around = EdgeNumbers([complete(4), ring(5), graph(4, [(0, 1), (1, 2), (0, 2), (2, 3)])]).triangles
    assert around.sum() / 6 == 4 + 0 + 1
    assert around[:12].tolist() == [2] * 12 and sorted(around[-8:].tolist()) == [0, 0, 1, 1, 1, 1, 1, 1]


def test_the_number_of_joint_neighbors_by_hand() -> None:
    # v = 4, e = 6; each node is in 3 triangles and has degree 3: c = 6 - 2 - 3 = 1
    wanted = (np.sqrt(1 + 4 * 3 * 4 - 6 * 3) - 1) / 2
    assert joint_neighbors(EdgeNumbers([complete(4)]), np.array([3]), np.array([3])) == pytest.approx([wanted])
    for plain in (ring(5), graph(3, [])):  # no triangle, nothing to restore
        assert joint_neighbors(EdgeNumbers([plain]), np.array([2]), np.array([0])).tolist() == [0]


@pytest.mark.parametrize("adjust", [True, False])
def test_a_split_shares_out_the_neighbors(adjust: bool) -> None:
    numbers = JoinedGraphs([path(3), graph(5, [(0, 1), (0, 2), (0, 3)])])
    for seed in range(20):
        split = split_nodes(numbers, None, np.array([1, 3]), adjust, np.random.default_rng(seed))
        edges = {tuple(sorted(edge)) for edge in split.edges.T.tolist()}
        assert len(edges) == 2 + 1 + 3 + 1  # no triangle: every neighbor has one of the halves
        assert (1, 8) in edges and (3, 9) in edges
        assert len(edges & {(0, 1), (0, 8)}) == len(edges & {(1, 2), (2, 8)}) == 1
        assert len(edges & {(3, 4), (3, 5), (3, 6), (4, 9), (5, 9), (6, 9)}) == 3


def test_a_merge_by_hand() -> None:
    square = JoinedGraphs([ring(4)])
    edges = np.array([[0, 1, 2, 0, 0], [1, 2, 3, 4, 3]])  # node 0 was split: 4 is its new half, and hangs on it alone
    rows = np.array([[0.0], [2.0], [4.0], [8.0]], dtype=np.float32)
    seen = set()
    for seed in range(60):
        rebuilt = merge_edges(square, Split(edges, None, np.array([0])), rows, np.random.default_rng(seed))
        (made,) = rebuilt.graphs([ring(4)])
        assert made.num_nodes == len(made.x) == 4
        seen.add((tuple(sorted(edges_of(made))), tuple(made.x.view(-1).tolist())))
    undone = ((0, 1), (0, 3), (1, 2), (2, 3)), (0.0, 2.0, 4.0, 8.0)
    first_and_second = ((0, 1), (0, 2), (0, 3), (1, 2)), (1.0, 4.0, 8.0, 0.0)
    assert undone in seen and first_and_second in seen and len(seen) == 5


def test_double_edges_become_one_with_the_mean_weight() -> None:
    triangle = JoinedGraphs([complete(3)])
    edges, weights = np.array([[0, 0, 1, 0], [1, 2, 2, 3]]), np.array([1.0, 2.0, 4.0, 8.0], dtype=np.float32)
    outcomes = set()
    for seed in range(40):
        made = merge_edges(triangle, Split(edges, weights, np.array([0])), None, np.random.default_rng(seed))
        outcomes.add(tuple(sorted(made.weights.tolist())))  # type: ignore[union-attr]
    # merging 0-1: (2 + 4) / 2 and 8; 0-2: (1 + 4) / 2 and 8; 1-2: (1 + 2) / 2 and 8; 0-3: all as before
    assert outcomes == {(3, 3, 8, 8), (2.5, 2.5, 8, 8), (1.5, 1.5, 8, 8), (1, 1, 2, 2, 4, 4)}


def test_size_and_label_stay_and_graphs_stay_apart() -> None:
    graphs = [complete(6, 1), path(7), graph(1, []), graph(4, []), ring(5, 1)]
    for seed in range(20):
        made = NodeSam()(graphs, np.random.default_rng(seed))
        assert [g.num_nodes for g in made] == [6, 7, 1, 4, 5]
        assert [int(g.y) for g in made] == [1, 0, 0, 0, 1]
        for one in made:
            assert all(0 <= i < j < one.num_nodes for i, j in edges_of(one))
            assert one.x.shape == (one.num_nodes, 1)


def test_the_adjustment_keeps_triangles() -> None:
    caveman = graph(30, [(6 * k + i, 6 * k + j) for k in range(5) for j in range(6) for i in range(j)])
    count = EdgeNumbers([caveman]).triangles.sum() / 6

    def mean_change(adjust: bool) -> float:
        stream = np.random.default_rng(1)
        made = [NodeSam(adjust=adjust)([caveman], stream)[0] for _ in range(300)]
        return float(np.mean([EdgeNumbers([one]).triangles.sum() / 6 for one in made])) - count

    assert abs(mean_change(True)) < 0.6 * abs(mean_change(False))


def test_policies() -> None:
    augmenter = NodeSam()
    assert (augmenter.when, augmenter.mode, augmenter.labels) == ("epoch", "replace", "kept")
    assert (augmenter.features, augmenter.weighted) == ("recompute", False)
    assert torch.equal(NodeSam()([path(2)], np.random.default_rng(0))[0].edge_index, torch.tensor([[0, 1], [1, 0]]))
