"""DropPath: edges of walks go, both directions together."""

from __future__ import annotations

import numpy as np
import pytest
from hand_graphs import edges_of, graph, path, ring

from augmenters import DropPath
from augmenters.droppath import walked_edges
from augmenters.functional import EdgeNumbers
from augmenters.kinds import EdgeFactorAugmenter, kind_of


def test_a_walk_takes_edges_that_follow_one_another() -> None:
    edges = EdgeNumbers([ring(9), ring(7)])
    for seed in range(30):
        (taken,) = walked_edges(edges, np.array([4]), 3, np.random.default_rng(seed)).reshape(3, 1).T
        ends = [set(edges.ends[:, edge].tolist()) for edge in taken]
        assert 4 in ends[0] and ends[0] & ends[1] and ends[1] & ends[2]


def test_a_walk_from_a_pair_goes_back_and_forth() -> None:
    assert walked_edges(EdgeNumbers([path(2)]), np.array([0]), 4, np.random.default_rng(0)).tolist() == [0] * 4


def test_nodes_without_edges_start_nothing() -> None:
    assert walked_edges(EdgeNumbers([graph(3, [])]), np.array([0, 2]), 3, np.random.default_rng(0)).tolist() == []


@pytest.mark.parametrize(("p", "left"), [(0.0, 8), (1.0, 0)])
def test_no_walk_and_walks_from_everywhere(p: float, left: int) -> None:
    (made,) = DropPath(p=p, length=50)([ring(8)], np.random.default_rng(0))
    assert len(edges_of(made)) == left and made.num_nodes == 8


def test_one_step_from_one_node_drops_one_edge() -> None:
    rng = np.random.default_rng(0)
    lost = [12 - len(edges_of(DropPath(p=0.05, length=1)([ring(12)], rng)[0])) for _ in range(200)]
    assert 0.4 < np.mean(lost) < 0.8  # 12 nodes start with probability 0.05


def test_it_has_the_fast_path() -> None:
    assert kind_of(DropPath) is EdgeFactorAugmenter and not DropPath.weighted
