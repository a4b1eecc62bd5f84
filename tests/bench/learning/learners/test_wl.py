"""The Weisfeiler-Lehman kernel against a slow one that says what it means, and against GraKeL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bench.learning.learners import wl
from bench.learning.learners.structure import Kept
from bench.learning.learners.wl import SubtreeKernel, is_one_hot, subtree_histograms
from bench.learning.problem import Fitted


def naive_kernel(graphs: list[Data], h: int) -> np.ndarray:
    """Patterns as nested tuples, counted and multiplied one by one."""
    counts = []
    for graph in graphs:
        neighbors: dict[int, set[int]] = {node: set() for node in range(int(graph.num_nodes or 0))}
        for a, b in graph.edge_index.t().tolist():
            neighbors[a].add(b)
        names: dict[int, Hashable] = {node: tuple(row) for node, row in enumerate(graph.x.tolist())}
        count = Counter((0, name) for name in names.values())
        for depth in range(1, h + 1):
            names = {v: (names[v], tuple(sorted((names[u] for u in neighbors[v]), key=repr))) for v in neighbors}
            count.update((depth, name) for name in names.values())
        counts.append(count)
    products = np.array([[sum(a[name] * b[name] for name in a) for b in counts] for a in counts], dtype=float)
    lengths = np.sqrt(np.diag(products))
    return products / np.outer(lengths, lengths)


@pytest.mark.parametrize("h", [0, 1, 3])
@pytest.mark.parametrize("density", [0.1, 0.3, 0.7])
def test_the_kernel_is_that_of_a_naive_count(h: int, density: float, some_graphs: Callable[..., list[Data]]) -> None:
    graphs = [graph for seed in range(3) for graph in some_graphs(seed, density)]
    histograms = subtree_histograms(graphs, h, hard=True)
    kernel = SubtreeKernel.of(histograms)
    np.testing.assert_allclose(kernel.within(), naive_kernel(graphs, h), rtol=1e-12)
    np.testing.assert_allclose(kernel.against(histograms), kernel.within(), rtol=1e-12)


def test_rows_that_are_no_labels_are_told_apart_exactly(some_graphs: Callable[..., list[Data]]) -> None:
    graphs = some_graphs(0)
    for graph in graphs:
        graph.x = torch.rand(int(graph.num_nodes or 0), 2).round(decimals=1)
    assert not any(map(is_one_hot, graphs))
    kernel = SubtreeKernel.of(subtree_histograms(graphs, 2, hard=False))
    np.testing.assert_allclose(kernel.within(), naive_kernel(graphs, 2), rtol=1e-12)


def test_graphs_that_color_refinement_cannot_tell_apart_are_equal(graph: Callable[..., Data]) -> None:
    hexagon = graph(6, [(i, (i + 1) % 6) for i in range(6)])
    triangles = graph(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    path = graph(6, [(i, i + 1) for i in range(5)])
    kernel = SubtreeKernel.of(subtree_histograms([hexagon, triangles, path], 5, hard=False)).within()
    assert kernel[0, 1] == pytest.approx(1)
    assert kernel[0, 2] < 0.9


def test_unseen_patterns_count_in_the_length_alone(graph: Callable[..., Data]) -> None:
    known, other = graph(2, [(0, 1)], 0, [0, 0]), graph(3, [(0, 1)], 0, [0, 0, 1])
    kernel = SubtreeKernel.of(subtree_histograms([known], 1, hard=True))
    # 2 + 2 patterns; the other graph adds a lone node of another label, once at each depth
    assert kernel.against(subtree_histograms([other], 1, hard=True))[0, 0] == pytest.approx(8 / np.sqrt(8 * 10))


def test_a_mixed_node_counts_as_the_label_it_has_most_of(graph: Callable[..., Data]) -> None:
    known = graph(2, [(0, 1)], 0, [0, 2])
    mixed = graph(2, [(0, 1)], 0, [0, 2])
    mixed.x = torch.tensor([[0.6, 0.4, 0.0], [0.3, 0.0, 0.7]])
    kernel = SubtreeKernel.of(subtree_histograms([known], 3, hard=True))
    assert kernel.against(subtree_histograms([mixed], 3, hard=True))[0, 0] == pytest.approx(1)


def test_graphs_of_a_dataset_are_looked_at_once_for_all_trials(
    rings_and_stars: list[Data], learn: Callable[..., Fitted], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def counting(graphs: list[Data], h: int, hard: bool) -> list[wl.Histogram]:
        seen.append(len(graphs))
        return subtree_histograms(graphs, h, hard)

    monkeypatch.setattr(wl, "subtree_histograms", counting)
    monkeypatch.setattr(wl, "_KEPT", Kept(2**20))
    for _ in range(2):
        learn("wl", rings_and_stars[:4]).predictor.probabilities(rings_and_stars)
    assert sum(seen) == len(rings_and_stars)
    learn("wl", rings_and_stars[:4], "gdm-complete")
    assert sum(seen) > len(rings_and_stars)  # generated graphs are new ones, and are not kept
    assert len(wl._KEPT._values) == len(rings_and_stars)


def test_the_kernel_is_graKeLs_on_real_data(data_root: Path) -> None:
    grakel = pytest.importorskip("grakel")
    from bench.datasets import load_dataset

    graphs = load_dataset("MUTAG", data_root).graphs
    theirs = []
    for graph in graphs:
        nodes = range(int(graph.num_nodes or 0))
        edges = {node: {int(b): 1.0 for a, b in graph.edge_index.t().tolist() if a == node} for node in nodes}
        theirs.append([edges, dict(zip(nodes, graph.x.argmax(dim=1).tolist(), strict=True))])
    kernel = grakel.WeisfeilerLehman(n_iter=5, normalize=True, base_graph_kernel=grakel.VertexHistogram)
    mine = SubtreeKernel.of(subtree_histograms(graphs, 5, hard=True)).within()
    np.testing.assert_allclose(mine, kernel.fit_transform(theirs), rtol=1e-9)
