"""FGWMixup and GeoMix by hand, on graphs whose barycenter and geodesic are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import complete, context, edges_of, path, ring
from torch_geometric.data import Data

from augmenters import AUGMENTERS, FGWMixup, GeoMix
from augmenters.fgw_mixup import barycenter, distance, nearness_label
from augmenters.geomix import common_support, mixed_on_support
from augmenters.transport import densest_pairs, pairs_of_small, uniform
from bench.plan.planner import Planner
from bench.registry import Entry, Extra, UserError
from tables.specs import Coordinate


def degrees(graph: Data) -> list[int]:
    return sorted(torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).tolist())


def flat(graph: Data) -> Data:
    """Without features that tell nodes apart."""
    graph.x = torch.ones(graph.num_nodes, 1)
    return graph


def test_between_a_graph_and_itself_is_the_graph() -> None:
    made = barycenter(flat(ring(6)), flat(ring(6, 1)), 0.5, 0.95, 2)
    assert made.num_nodes == 6 and degrees(made) == [2] * 6
    assert torch.allclose(made.y, torch.full((1, 2), 0.5))
    assert torch.allclose(made.x, torch.ones(6, 1))
    near = barycenter(flat(ring(6)), flat(ring(6, 1)), 0.3, 0.95, 2)
    assert near.num_nodes == 6  # 0.3 * 6 + 0.7 * 6 is less than 6 in floating point


def test_size_density_and_label_of_a_barycenter() -> None:
    made = barycenter(flat(complete(4)), flat(path(9, 1)), 0.5, 0.95, 2)
    assert made.num_nodes == 6  # floor(0.5 * 4 + 0.5 * 9)
    wanted = 0.5 * 1 + 0.5 * 8 / 36
    assert len(edges_of(made)) == round(wanted * 15)
    assert made.y.sum().item() == pytest.approx(1)
    near = barycenter(flat(complete(4)), flat(path(9, 1)), 0.999, 0.95, 2)
    assert near.y[0, 0] > 0.9 and degrees(near) == [3] * 4


def test_distances_and_labels_by_hand() -> None:
    ones = np.ones((3, 1))
    one = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert distance(one, ones, one, ones, 0.95) == pytest.approx(0, abs=1e-9)
    empty = np.zeros((3, 3))  # four of nine pairs differ by one, structure weighs 0.95
    assert distance(one, ones, empty, ones, 0.95) == pytest.approx(0.95 * 4 / 9)
    assert distance(one, ones, one, 0 * ones, 0.95) == pytest.approx(0.05)
    labels = [torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])]
    assert torch.allclose(nearness_label([1.0, 3.0], 0.5, labels), torch.tensor([[0.75, 0.25]]))


def test_the_densest_pairs() -> None:
    strength = np.array([[9.0, 0.3, 0.1], [0.3, 9.0, 0.2], [0.1, 0.2, 9.0]])
    joined = densest_pairs(strength, 2 / 3)
    assert joined.tolist() == [[False, True, False], [True, False, True], [False, True, False]]
    assert not densest_pairs(strength, 0).any() and densest_pairs(strength, 1).sum() == 6
    assert densest_pairs(np.ones((1, 1)), 1).tolist() == [[False]]


def test_large_graphs_are_left_out_and_counted() -> None:
    known = context()
    pairs = pairs_of_small([ring(5), ring(50), ring(6)], 20, 10, np.random.default_rng(0), known.note)
    assert {i for pair in pairs for i in pair} == {0, 2} and known.notes == {"left_out_too_large": 1}
    pairs = pairs_of_small([ring(50), ring(40)], 2, 10, np.random.default_rng(0), known.note)
    assert pairs == [(1, 1), (1, 1)]


def test_two_graphs_on_a_support_by_hand() -> None:
    halves = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    made = mixed_on_support(path(4), ring(4, 1), (halves, halves), 0.25, 0.0, 2)
    # between the halves a path has one of four pairs, a ring two
    assert edges_of(made) == {(0, 1)}
    assert made.edge_weight.tolist() == pytest.approx([0.25 * 0.25 + 0.75 * 0.5] * 2)
    assert made.y.tolist() == [[0.25, 0.75]] and made.x.view(-1).tolist() == [0.5, 2.5]


def test_a_support_is_made_of_shares_of_the_nodes() -> None:
    first, second = common_support(ring(9), path(7), 4, 3)
    assert first.shape == (4, 9) and second.shape == (4, 7)
    for rows in (first, second):
        assert (rows >= 0).all() and np.allclose(rows.sum(axis=1), 1)
    again = common_support(ring(9), path(7), 4, 3)
    assert (again[0] == first).all() and not np.array_equal(common_support(ring(9), path(7), 4, 4)[0], first)
    assert common_support(path(1), path(5), 4, 0)[1].tolist() == [uniform(5).tolist()]


def test_sizes_of_what_the_methods_make() -> None:
    graphs = [ring(8), path(7, 1), complete(5), path(9, 1)]
    rng = np.random.default_rng
    assert {one.num_nodes for one in GeoMix(support=4)(graphs, rng(0), context())} == {4}
    assert len(FGWMixup(count=2.0)(graphs, rng(0), context())) == 9


def test_without_the_package_it_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_data_root: object) -> None:
    missing = Entry("fgw-mixup", "augmenters.fgw_mixup:FGWMixup", needs=Extra("no-such-package", "ot"))
    assert missing.lacks == "fgw-mixup needs the package no-such-package; pip install 'augbench[ot]' brings it"
    monkeypatch.setitem(AUGMENTERS.entries(), "fgw-mixup", missing)
    with pytest.raises(UserError, match="needs the package"):
        AUGMENTERS.create("fgw-mixup")
    at = Coordinate("digits", 2, "fgw-mixup", "gcn", "mean", "gnn")
    assert Planner(tmp_data_root).obstacle(at) == missing.lacks  # type: ignore[arg-type]
