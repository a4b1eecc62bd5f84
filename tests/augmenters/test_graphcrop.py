"""GraphCrop keeps a connected part around its root."""

from __future__ import annotations

import numpy as np
import pytest
from hand_graphs import edges_of, graph, path, ring

from augmenters import GraphCrop
from augmenters.kinds import KeptNodesAugmenter, kind_of


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9, 1.0])
def test_a_crop_of_a_ring_is_one_arc(p: float) -> None:
    for seed in range(20):
        (made,) = GraphCrop(p=p)([ring(10)], np.random.default_rng(seed))
        kept = made.x.view(-1).long().tolist()
        assert len(kept) == made.num_nodes == max(10 - int(p * 10), 1)
        assert len(edges_of(made)) == (10 if p == 0 else len(kept) - 1)


def test_a_crop_does_not_leave_a_component_that_is_large_enough() -> None:
    two = graph(12, [(i, i + 1) for i in range(5)] + [(i, i + 1) for i in range(6, 11)])
    for seed in range(20):
        (made,) = GraphCrop(p=0.5)([two], np.random.default_rng(seed))
        assert sorted(made.x.view(-1).tolist()) in ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11])


def test_any_node_can_be_the_root_and_graphs_do_not_mix() -> None:
    rng, seen = np.random.default_rng(0), [set(), set()]
    for _ in range(100):
        for place, made in enumerate(GraphCrop(p=1.0)([path(4), path(3)], rng)):
            seen[place].add(float(made.x))
    assert seen == [{0, 1, 2, 3}, {0, 1, 2}]


def test_it_has_the_fast_path() -> None:
    assert kind_of(GraphCrop) is KeptNodesAugmenter
    assert (GraphCrop().p, GraphCrop().features) == (0.3, "carry")
