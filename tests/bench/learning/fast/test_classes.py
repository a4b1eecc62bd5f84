"""Which nodes the fast engine takes for equal, and how near-complete graphs are held."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from bench.learning.fast.graphs import classes
from bench.learning.fast.graphs.aggregation import node_matrix
from bench.learning.fast.graphs.classes import each_alone, refine
from bench.learning.fast.graphs.joined import join
from bench.learning.fast.graphs.sameness import Neighborhoods
from bench.learning.fast.not_fast import NotFast


def graph(n: int, edges: list[tuple[int, int]], x: torch.Tensor | None = None) -> Data:
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    features = torch.ones(n, 1) if x is None else x
    return Data(x=features, edge_index=to_undirected(index, num_nodes=n), num_nodes=n)


def complete(n: int) -> Data:
    return graph(n, [(i, j) for i in range(n) for j in range(i)])


def counts(graphs: list[Data], layers: int = 3, by_degree: bool = True) -> list[int]:
    return [part.count for part in refine(join(graphs), layers, by_degree)]


def test_all_nodes_of_complete_graphs_of_one_size_are_equal() -> None:
    assert counts([complete(6), complete(6)]) == [1, 1, 1, 1]
    assert counts([complete(6), complete(5)]) == [2, 2, 2, 2]


def test_a_path_is_told_apart_from_its_ends_inwards() -> None:
    path = graph(9, [(i, i + 1) for i in range(8)])
    # With the senders' degrees: ends and inner nodes, then a step further inwards each layer.
    assert counts([path]) == [2, 3, 4, 5]
    assert counts([path], by_degree=False) == [1, 2, 3, 4]


def test_features_and_weights_tell_nodes_apart() -> None:
    square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    plain = graph(4, square)
    marked = graph(4, square, torch.tensor([[1.0], [0.0], [0.0], [0.0]]))
    assert counts([plain], layers=2) == [1, 1, 1]
    assert counts([marked], layers=2) == [2, 3, 3]
    weighted = graph(4, square)
    weighted.edge_weight = torch.where(weighted.edge_index.sum(dim=0) == 1, 0.5, 1.0)
    assert counts([weighted], layers=2) == [2, 2, 2]


def test_equal_nodes_of_different_graphs_share_a_class() -> None:
    found = refine(join([graph(3, [(0, 1), (1, 2)]), graph(3, [(0, 1), (1, 2)])]), 2, by_degree=True)[-1]
    assert found.count == 2
    assert found.of_node.tolist()[:3] == found.of_node.tolist()[3:]


def test_distinct_nodes_stay_as_they_are() -> None:
    many = graph(40, [(i, i + 1) for i in range(39)], torch.eye(40))
    found = refine(join([many]), 2, by_degree=True)[-1]
    assert np.array_equal(found.of_node, each_alone(40).of_node)


@pytest.mark.parametrize("kind", ["gcn", "gin", "sage"])
def test_near_complete_graphs_give_the_same_matrix_and_classes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = complete(12)
    keep = ~((dense.edge_index < 2).all(dim=0) | (dense.edge_index.sum(dim=0) == 20))
    dense.edge_index = dense.edge_index[:, keep]
    graphs = [dense, graph(5, [(0, 1), (1, 2)]), complete(12)]
    whole = join(graphs, whole=True)
    monkeypatch.setattr("bench.learning.fast.graphs.joined.SUMS_COST", 0)
    held = join(graphs)
    assert whole.near_complete.tolist() == [False, False, False]
    assert held.near_complete.tolist() == [True, False, True]
    assert held.edges.nnz < whole.edges.nnz
    for way in (whole, held):
        matrix = node_matrix(way, kind)
        assert np.allclose(matrix.expanded().direct.toarray(), node_matrix(whole, kind).direct.toarray())
    for one, other in zip(refine(whole, 3, True), refine(held, 3, True), strict=True):
        assert np.array_equal(one.of_node, other.of_node)


def test_what_the_engine_cannot_take_is_named() -> None:
    with pytest.raises(NotFast, match="self loop"):
        join([Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [0]]), num_nodes=2)])
    with pytest.raises(NotFast, match="without nodes"):
        join([Data(x=torch.ones(0, 1), edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0)])
    with pytest.raises(NotFast, match="float64"):
        join([graph(2, [(0, 1)], torch.ones(2, 1, dtype=torch.float64))])


def written_out(graphs: list[Data], layers: int, by_degree: bool) -> list[list[object]]:
    """Color refinement as in a textbook: a node's color is its old one and the sorted ones of its neighbors."""
    whole = join(graphs, whole=True)
    matrix, degrees = whole.edges.tocsr(), whole.degrees()
    colors: list[object] = [(row.tobytes(), degrees[i] if by_degree else 0) for i, row in enumerate(whole.x)]
    found = [colors]
    for _ in range(layers):
        around = [range(*part) for part in itertools.pairwise(matrix.indptr)]
        new: list[object] = [
            (colors[i], tuple(sorted((repr(colors[matrix.indices[e]]), matrix.data[e]) for e in around[i])))
            for i in range(len(colors))
        ]
        numbers = {color: number for number, color in enumerate(dict.fromkeys(new))}
        colors = [numbers[color] for color in new]
        found.append(colors)
    return found


def some_sets(some_graphs: Callable[..., list[Data]]) -> list[list[Data]]:
    twins = [graph(3, [(0, 1), (1, 2)]), graph(3, [(0, 1), (1, 2)]), graph(4, [(0, 1), (1, 2), (2, 3), (3, 0)])]
    nearly = graph(12, [(i, j) for i in range(12) for j in range(i) if i + j > 2])
    dense = [complete(12), complete(12), complete(9), nearly]
    weighted = some_graphs(5, weighted=True)
    for one in weighted:
        one.edge_weight = (one.edge_weight > 1).float() + 0.5
    return [twins, dense, [*twins, *dense], weighted, some_graphs(1), some_graphs(2, density=0.9)]


@pytest.fixture
def weak_hash(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash under which many nodes collide that are not equal; no bits: all of them."""
    mask = np.uint64(2**request.param - 1)
    monkeypatch.setattr(classes, "scramble", lambda code: code & mask)
    monkeypatch.setattr(classes, "row_codes", lambda x: np.zeros(len(x), dtype=np.uint64))


@pytest.mark.usefixtures("weak_hash")
@pytest.mark.parametrize("weak_hash", [0, 1, 3], indirect=True)
@pytest.mark.parametrize("by_degree", [False, True])
@pytest.mark.parametrize("place", range(6))
def test_a_collision_of_hashes_merges_nothing_that_is_not_equal(
    some_graphs: Callable[..., list[Data]], place: int, by_degree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.learning.fast.graphs.joined.SUMS_COST", 0)
    monkeypatch.setattr(classes, "WORTH_MERGING", 1.0)
    graphs = some_sets(some_graphs)[place]
    for found, colors in zip(refine(join(graphs), 3, by_degree), written_out(graphs, 3, by_degree), strict=True):
        assert all(colors[i] == colors[found.stand_in[c]] for i, c in enumerate(found.of_node))
        assert np.array_equal(found.of_node[found.stand_in], np.arange(found.count))


@pytest.mark.parametrize("by_degree", [False, True])
@pytest.mark.parametrize("place", range(6))
def test_classes_are_those_of_color_refinement(
    some_graphs: Callable[..., list[Data]], place: int, by_degree: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that are equal are merged, and nothing else; equal nodes are never told apart by the check."""
    monkeypatch.setattr("bench.learning.fast.graphs.joined.SUMS_COST", 0)
    monkeypatch.setattr(classes, "WORTH_MERGING", 1.0)
    graphs = some_sets(some_graphs)[place]
    for found, colors in zip(refine(join(graphs), 3, by_degree), written_out(graphs, 3, by_degree), strict=True):
        assert found.count == len(set(colors))
        assert all(colors[i] == colors[found.stand_in[c]] for i, c in enumerate(found.of_node))


@pytest.mark.usefixtures("weak_hash", "double", "one_thread")
@pytest.mark.parametrize("weak_hash", [0, 2], indirect=True)
@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage", "gat"])
def test_training_is_right_under_a_weak_hash(
    problem: Callable[..., Any], same_training: Callable[..., None], backbone: str
) -> None:
    same_training(problem("none", backbone=backbone))


def test_sparse_and_near_complete_graphs_may_share_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way a neighborhood is held, equal ones are seen to be equal, and by the exact comparison too."""
    monkeypatch.setattr("bench.learning.fast.graphs.joined.SUMS_COST", 0)
    five = [(i, j) for i in range(5) for j in range(i)]
    other = graph(7, [*five[:-1], (4, 5), (3, 6)])  # as many neighbors for each of the five, in a sparse graph
    joined = join([complete(5), other])
    assert joined.near_complete.tolist() == [True, False]
    before = np.zeros(12, dtype=np.int64)
    nodes, others = np.array([1, 2, 0, 1]), np.array([5, 6, 10, 1])
    assert Neighborhoods(joined).same(before, nodes, others).tolist() == [True, True, False, True]
