"""PerturbEdge: as many edges as before, both directions, no self loop, none between graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import complete, edges_of, graph, path, ring

from augmenters import PerturbEdge
from augmenters.functional import EdgeNumbers
from augmenters.perturbedge import pairs_apart, pairs_of_numbers


@pytest.mark.parametrize("n", [2, 3, 7, 20])
def test_every_number_is_a_pair(n: int) -> None:
    pairs = pairs_of_numbers(np.arange(n * (n - 1) // 2), n).T.tolist()
    assert pairs == [[i, j] for i in range(n) for j in range(i + 1, n)]


def test_all_pairs_that_are_not_joined_can_come() -> None:
    numbers = EdgeNumbers([path(2), ring(5), graph(3, [(0, 2)])])
    absent = np.array([0, 5, 2])
    found = pairs_apart(numbers, absent, absent, np.random.default_rng(0)).T.tolist()
    assert sorted(found[:5]) == [[2, 4], [2, 5], [3, 5], [3, 6], [4, 6]]  # the diagonals of the ring, nodes 2 to 6
    assert sorted(found[5:]) == [[7, 8], [8, 9]]


@pytest.mark.parametrize(("p", "gone"), [(0.0, 0), (0.2, 2), (1.0, 10)])
def test_a_share_goes_and_as_many_others_come(p: float, gone: int) -> None:
    for seed in range(20):
        before, small = ring(10), path(3)
        made, other = PerturbEdge(p=p)([before, small], np.random.default_rng(seed))
        assert len(edges_of(made)) == 10 and len(edges_of(made) - edges_of(before)) == gone
        assert len(edges_of(other)) == 2 and all(j < 3 for _, j in edges_of(other))
        assert torch.equal(made.x, before.x)


def test_complete_and_empty_graphs_stay() -> None:
    made = PerturbEdge(p=0.5)([complete(5), graph(4, []), graph(1, [])], np.random.default_rng(0))
    assert [len(edges_of(one)) for one in made] == [10, 0, 0]


def test_weights_stay_the_same_numbers() -> None:
    one = path(5)
    one.edge_weight = torch.tensor([1.0, 2.0, 3.0, 4.0] * 2)
    one.edge_attr = torch.ones(8, 2)
    (made,) = PerturbEdge(p=0.5)([one], np.random.default_rng(0))
    weights = dict(zip(map(tuple, made.edge_index.T.tolist()), made.edge_weight.tolist(), strict=True))
    assert all(weights[j, i] == w for (i, j), w in weights.items())
    assert sorted(weights.values()) == [1, 1, 2, 2, 3, 3, 4, 4] and "edge_attr" not in made


def test_policies() -> None:
    augmenter = PerturbEdge()
    assert (augmenter.p, augmenter.when, augmenter.mode, augmenter.labels) == (0.2, "epoch", "replace", "kept")
    assert augmenter.features == "recompute"
