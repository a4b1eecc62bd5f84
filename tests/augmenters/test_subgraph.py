"""Subgraph: a walk that reaches its share wherever it starts, and leaves the first neighborhood."""

from __future__ import annotations

import numpy as np
import pytest
from hand_graphs import edges_of, graph, path, ring

from augmenters import Subgraph
from augmenters.functional import EdgeNumbers
from augmenters.kinds import KeptNodesAugmenter, kind_of
from augmenters.subgraph import walk_order


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 1.0])
def test_what_stays_is_connected_and_has_its_size(p: float) -> None:
    for seed in range(20):
        (made,) = Subgraph(p=p)([ring(10)], np.random.default_rng(seed))
        assert made.num_nodes == max(10 - int(p * 10), 1)
        assert len(edges_of(made)) == (10 if p == 0 else made.num_nodes - 1)  # one arc


def test_the_walk_leaves_the_first_neighborhood() -> None:
    """A public version never does: on a path its subgraph has three nodes at most."""
    for seed in range(20):
        (made,) = Subgraph(p=0.2)([path(50)], np.random.default_rng(seed))
        kept = made.x.view(-1)
        assert made.num_nodes == 40 and float(kept.max() - kept.min()) == 39


def test_it_goes_on_in_another_component_only_when_one_is_used_up() -> None:
    two = graph(10, [(i, i + 1) for i in range(4)] + [(i, i + 1) for i in range(5, 9)])
    for seed in range(20):
        order = walk_order(EdgeNumbers([two]), np.random.default_rng(seed)).tolist()
        assert sorted(order[:5]) in ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9]) and sorted(order) == list(range(10))


def test_each_step_takes_a_uniformly_random_edge() -> None:
    """From the center of a star of three rays, one of them longer: the second step has three edges to choose from."""
    star = EdgeNumbers([graph(5, [(0, 1), (0, 2), (0, 3), (3, 4)])])
    rng, seen = np.random.default_rng(0), []
    for _ in range(6000):
        order = walk_order(star, rng).tolist()
        if order[:2] == [0, 3]:
            seen.append(order[2])
    shares = np.bincount(seen, minlength=5) / len(seen)
    assert shares == pytest.approx([0, 1 / 3, 1 / 3, 0, 1 / 3], abs=0.06)


def test_graphs_do_not_mix() -> None:
    order = walk_order(EdgeNumbers([path(3), ring(4), path(1)]), np.random.default_rng(0))
    assert sorted(order[:3]) == [0, 1, 2] and sorted(order[3:7]) == [3, 4, 5, 6] and order[7] == 7


def test_it_has_the_fast_path() -> None:
    assert kind_of(Subgraph) is KeptNodesAugmenter and Subgraph().p == 0.2
