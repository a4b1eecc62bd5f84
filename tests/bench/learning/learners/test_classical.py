"""Soft labels as sample weights, and what the simple learners compute, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters.base import GraphAugmenter
from bench.learning.learners.histogram import histogram_of
from bench.learning.learners.statistics import NAMES, graph_statistics
from bench.learning.learners.structure import Kept, content, degrees, pairs, triangles
from bench.learning.problem import Fitted, Problem

Graph = Callable[..., Data]


@dataclass
class Doubt(GraphAugmenter):
    """Replaces every label by a soft one."""

    when: ClassVar[Literal["offline", "epoch", "batch"]] = "offline"
    sure: float = 0.7

    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        return None

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        shares = [torch.tensor([[self.sure, 1 - self.sure]]), torch.tensor([[1 - self.sure, self.sure]])]
        return [Data(x=g.x, edge_index=g.edge_index, num_nodes=g.num_nodes, y=shares[int(g.y)]) for g in graphs]


@pytest.fixture
def sizes(graph: Graph) -> list[Data]:
    """Class 0 is small, class 1 large."""
    return [graph(n, [], int(n > 5)) for n in (2, 3, 4, 20, 30, 40)]


def test_soft_labels_are_weights(sizes: list[Data], learn: Callable[..., Fitted]) -> None:
    assert learn("majority", sizes[:4], Doubt(0.9)).predictor.probabilities(sizes[:1])[0].tolist() == pytest.approx(
        [(3 * 0.9 + 0.1) / 4, (3 * 0.1 + 0.9) / 4]
    )
    sure, unsure = (learn("size", sizes, Doubt(share)).predictor.probabilities(sizes) for share in (1.0, 0.7))
    assert bool((sure[:3, 0] > unsure[:3, 0]).all()) and bool((unsure[:3, 0] > 0.5).all())
    turned = learn("size", sizes, Doubt(0.3)).predictor.probabilities(sizes)
    torch.testing.assert_close(turned, unsure.flip(1), rtol=1e-3, atol=1e-3)


def test_size_is_a_logistic_regression_on_the_log_of_the_node_count(
    sizes: list[Data], learn: Callable[..., Fitted]
) -> None:
    """The regularized optimum by a search over slope and intercept."""
    from scipy.optimize import minimize

    logs = np.log([2, 3, 4, 20, 30, 40])
    rows, classes = (logs - logs.mean()) / logs.std(), np.array([-1, -1, -1, 1, 1, 1])

    def loss(at: np.ndarray, c: float) -> float:
        return float(at[0] ** 2 / 2 + c * np.log1p(np.exp(-classes * (at[0] * rows + at[1]))).sum())

    for c in (1.0, 0.1):
        slope, intercept = minimize(loss, np.zeros(2), args=(c,), tol=1e-10).x
        wanted = 1 / (1 + np.exp(-(slope * rows + intercept)))
        found = learn(f"size:c={c}", sizes).predictor.probabilities(sizes)[:, 1]
        assert found.numpy() == pytest.approx(wanted, abs=1e-3)


def test_statistics_of_a_triangle_with_a_tail_and_a_lone_node(graph: Graph) -> None:
    found = dict(zip(NAMES, graph_statistics(graph(5, [(0, 1), (1, 2), (0, 2), (2, 3)])), strict=True))
    assert found == pytest.approx(
        {
            "nodes": 5,
            "edges": 4,
            "density": 0.4,
            "mean degree": 1.6,
            "standard deviation of degrees": math.sqrt(18 / 5 - 1.6**2),
            "highest degree": 3,
            "share of isolated nodes": 0.2,
            "triangles": 1,
            "mean clustering": (1 + 1 + 1 / 3) / 5,
            "transitivity": 3 / 5,
        }
    )
    assert not graph_statistics(graph(1, []))[1:6].any()


def test_triangles_are_those_of_the_dense_product(some_graphs: Callable[..., list[Data]]) -> None:
    for graph in some_graphs(1, density=0.6):
        n = int(graph.num_nodes or 0)
        dense = torch.zeros(n, n, dtype=torch.long)
        dense[graph.edge_index[0], graph.edge_index[1]] = 1
        assert triangles(graph).tolist() == ((dense @ dense @ dense).diagonal() // 2).tolist()
        assert degrees(graph).tolist() == dense.sum(dim=0).tolist()


def test_edges_are_read_once_without_loops() -> None:
    graph = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2], [1, 0, 1, 1, 1]]), num_nodes=3)
    assert [ends.tolist() for ends in pairs(graph)] == [[0, 1], [1, 2]]


def test_histograms_count_labels_or_degrees(graph: Graph) -> None:
    labeled = [graph(4, [(0, 1)], 0, [0, 1, 1, 2])]
    assert histogram_of(labeled)(labeled).tolist() == [[1, 2, 1]]
    bare = [graph(4, [(0, 1), (1, 2)])]
    counted = histogram_of(bare)
    assert counted(bare).tolist() == [[1, 2, 1]]
    assert counted([graph(5, [(0, i) for i in range(1, 5)])]).tolist() == [[0, 4, 1]]  # degree 4 shares the last place


def test_what_is_kept_is_made_once_and_the_oldest_goes(graph: Graph) -> None:
    made: list[int] = []

    def sizes_of(graphs: list[Data]) -> list[np.ndarray]:
        made.extend(int(g.num_nodes or 0) for g in graphs)
        return [np.full(4, g.num_nodes) for g in graphs]

    kept: Kept[np.ndarray] = Kept(most=8)
    some = [graph(n, []) for n in (1, 2, 1)]
    assert [int(row[0]) for row in kept.fetch(some, "a", sizes_of)] == [1, 2, 1]
    assert made == [1, 2]
    kept.fetch([graph(2, [])], "a", sizes_of)
    kept.fetch([graph(3, [])], "a", sizes_of)  # three are too much: the first goes
    assert made == [1, 2, 3]
    kept.fetch([graph(2, [])], "a", sizes_of)
    kept.fetch([graph(1, [])], "a", sizes_of)
    assert made == [1, 2, 3, 1]
    kept.fetch([graph(1, [])], "b", sizes_of)
    assert made == [1, 2, 3, 1, 1]


def test_the_content_of_a_graph_is_its_nodes_features_and_edges(graph: Graph) -> None:
    one = graph(3, [(0, 1)], 0, [0, 1, 2])
    assert content(one) == content(graph(3, [(0, 1)], 1, [0, 1, 2]))
    for other in (graph(3, [(0, 2)], 0, [0, 1, 2]), graph(3, [(0, 1)], 0, [0, 2, 1]), graph(3, [(0, 1)])):
        assert content(other) != content(one)


def test_a_learner_called_by_hand_refuses_what_works_during_training(
    sizes: list[Data], problem: Callable[..., Problem], learn: Callable[..., Fitted]
) -> None:
    with pytest.raises(ValueError, match="DropEdge works during training"):
        learn("size", sizes, "dropedge")
