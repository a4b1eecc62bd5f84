"""Graphons of known graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters.graphons import (
    Graphon,
    aligned_adjacency,
    aligned_features,
    degree_order,
    estimate_graphon,
    largest_gap,
    mix_graphons,
    sample_edges,
    singular_value_threshold,
)


def graph(n: int, pairs: list[tuple[int, int]], x: torch.Tensor | None = None) -> Data:
    both = torch.tensor(pairs + [(j, i) for i, j in pairs], dtype=torch.long).reshape(-1, 2).T
    return Data(x=x, edge_index=both, num_nodes=n)


STAR = graph(4, [(2, 0), (2, 1), (2, 3)], torch.tensor([[1.0], [2.0], [9.0], [4.0]]))
PAIR = graph(2, [(0, 1)], torch.tensor([[5.0], [7.0]]))


def test_nodes_in_order_of_degree() -> None:
    assert degree_order(STAR).tolist() == [2, 0, 1, 3]


def test_adjacency_is_padded_or_cropped() -> None:
    assert aligned_adjacency(STAR, 3).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert aligned_adjacency(PAIR, 3).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_a_huge_graph_is_cropped_before_it_is_dense() -> None:
    n = 200_000  # dense it would take 320 GB
    hub = graph(n, [(0, i) for i in range(1, n)])
    assert aligned_adjacency(hub, 3).tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]


def test_features_are_means_over_the_graphs_that_reach_a_position() -> None:
    features = aligned_features([STAR, PAIR], 5)
    assert features is not None
    mean_of_all = (1 + 2 + 9 + 4 + 5 + 7) / 6
    assert features.ravel().tolist() == pytest.approx([7.0, 4.0, 2.0, 4.0, mean_of_all])
    assert aligned_features([STAR, graph(2, [(0, 1)])], 3) is None


def test_constant_features_stay_constant() -> None:
    graphs = [graph(n, [(0, 1)], torch.ones(n, 2)) for n in (2, 3, 6)]
    np.testing.assert_allclose(aligned_features(graphs, 8), np.ones((8, 2)))


def test_graphon_of_two_known_graphs() -> None:
    # mean of the star and the pair at K = 4: 01 in both, 02 and 03 in one
    mean = (aligned_adjacency(STAR, 4) + aligned_adjacency(PAIR, 4)) / 2
    assert mean[0].tolist() == [0, 1, 0.5, 0.5] and mean[1].tolist() == [1, 0, 0, 0]
    # degrees 2, 1, 0.5, 0.5: three blocks {0}, {1}, {2, 3}
    smooth = estimate_graphon([STAR, PAIR], 4, "lg").probabilities
    upper = {(i, j): smooth[i, j] for j in range(4) for i in range(j)}
    assert upper == {(0, 1): 1.0, (0, 2): 0.5, (0, 3): 0.5, (1, 2): 0.0, (1, 3): 0.0, (2, 3): 0.0}


def test_largest_gap_averages_blocks_and_keeps_the_expected_edges() -> None:
    rng = np.random.default_rng(0)
    mean = np.triu(rng.random((20, 20)), 1)
    mean += mean.T
    smooth = largest_gap(mean)
    np.testing.assert_allclose(smooth, smooth.T)
    assert len(np.unique(smooth.round(9))) <= 5 * 6 / 2
    assert np.triu(smooth, 1).sum() == pytest.approx(np.triu(mean, 1).sum())
    assert smooth.min() >= 0 and smooth.max() <= 1


def test_largest_gap_finds_two_blocks() -> None:
    truth = np.array([[0.9, 0.1], [0.1, 0.3]]).repeat(16, 0).repeat(16, 1)
    np.fill_diagonal(truth, 0)
    smooth = largest_gap(truth)
    np.testing.assert_allclose(smooth - np.diag(np.diag(smooth)), truth, atol=1e-12)


def test_threshold_of_singular_values() -> None:
    # 0.9 everywhere has one singular value 0.9 K; noise of +-0.01 in signs lies below 0.2 sqrt(K)
    signs = np.where(np.random.default_rng(0).random((16, 16)) < 0.5, -0.01, 0.01)
    noisy = 0.9 + np.triu(signs) + np.triu(signs, 1).T
    smooth = singular_value_threshold(noisy)
    assert np.linalg.matrix_rank(smooth, tol=1e-6) == 1
    np.testing.assert_allclose(smooth, 0.9, atol=0.02)
    assert not singular_value_threshold(np.full((16, 16), 0.04)).any()  # 0.64 is below 0.8
    singular = np.linalg.svd(aligned_adjacency(STAR, 4))[1]  # sqrt(3) twice: both signs of an eigenvalue count
    assert singular[:2] == pytest.approx([3**0.5] * 2)
    np.testing.assert_allclose(
        singular_value_threshold(aligned_adjacency(STAR, 4)), aligned_adjacency(STAR, 4), atol=1e-9
    )


def test_mixing_is_linear() -> None:
    first, second = Graphon(np.full((2, 2), 1.0), np.array([[1.0], [2.0]])), Graphon(np.zeros((2, 2)), np.zeros((2, 1)))
    mixed = mix_graphons(first, second, 0.2)
    assert mixed.probabilities.tolist() == [[0.2, 0.2], [0.2, 0.2]]
    assert mixed.features is not None and mixed.features.ravel().tolist() == [0.2, 0.4]


def test_sampled_edges_follow_the_probabilities() -> None:
    probabilities = np.array([[1, 1, 0.3], [1, 1, 0], [0.3, 0, 1]])
    rng, counts = np.random.default_rng(0), np.zeros((3, 3))
    for _ in range(1000):
        low, high = sample_edges(probabilities, rng)
        assert (low < high).all()
        counts[low, high] += 1
    assert counts[0, 1] == 1000 and counts[1, 2] == 0 and 250 < counts[0, 2] < 350
