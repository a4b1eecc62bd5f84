"""Personalized PageRank on graphs small enough for a pocket calculator."""

from __future__ import annotations

import numpy as np
import pytest
from hand_graphs import graph, path

from augmenters.functional import EdgeNumbers
from augmenters.pagerank import order_from_roots, pagerank


def test_one_step_on_a_pair() -> None:
    numbers = EdgeNumbers([path(2)])  # with self loops every entry of the normalized matrix is 1/2
    assert numbers.propagation.toarray() == pytest.approx(np.full((2, 2), 0.5))
    assert pagerank(numbers.propagation, np.array([0]), steps=1) == pytest.approx([0.15 + 0.85 * 0.5, 0.85 * 0.5])


def test_scores_fall_with_the_distance_and_stay_within_a_graph() -> None:
    numbers = EdgeNumbers([path(6), path(4)])
    scores = pagerank(numbers.propagation, np.array([0, 9]))
    assert (np.diff(scores[:6]) < 0).all() and (np.diff(scores[6:]) > 0).all()
    assert pagerank(numbers.propagation, np.array([0]))[6:].tolist() == [0.0] * 4


def test_the_root_comes_first_its_component_next() -> None:
    numbers = EdgeNumbers([graph(5, [(0, 1), (3, 4)])])
    for seed in range(20):
        order = order_from_roots(numbers, np.array([3]), np.random.default_rng(seed))
        assert order[:2].tolist() == [3, 4] and sorted(order.tolist()) == [0, 1, 2, 3, 4]


def test_far_nodes_of_the_component_come_before_other_components() -> None:
    long = graph(40, [(i, i + 1) for i in range(29)])  # ten steps do not reach the end of a path of 30
    order = order_from_roots(EdgeNumbers([long]), np.array([0]), np.random.default_rng(0))
    assert set(order[:30].tolist()) == set(range(30))
