"""Edges from embeddings: Eq. 11-13 by hand, tiles, calibration, controls."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from augmenters import gdm_wiring
from augmenters.gdm_wiring import calibrated_edges, complete_edges, inner_products, no_edges, threshold_edges

H = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 1.0]])  # inner products 01: 0, 02: -3, 12: 2


def pairs(edge_index: torch.Tensor) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in edge_index.T.tolist()]


def test_threshold_by_hand() -> None:
    # sigmoid of 0, -3, 2 is 0.5, 0.047, 0.881
    assert pairs(threshold_edges(H, 0.1)[0]) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert pairs(threshold_edges(H, 0.6)[0]) == [(1, 2), (2, 1)]
    assert threshold_edges(H, 0.04)[0].shape == (2, 6)
    assert pairs(threshold_edges(H, 0.5)[0]) == [(0, 1), (1, 0), (1, 2), (2, 1)]  # at eps an edge stays
    assert threshold_edges(H, 0.0)[0].shape == (2, 6)
    assert threshold_edges(H, 1.0)[0].shape == (2, 0)


def test_unweighted_by_default_and_weights_kept_where_asked() -> None:
    assert threshold_edges(H, 0.1)[1] is None
    edge_index, weight = threshold_edges(H, 0.1, weighted=True)
    assert weight is not None
    expected = [1 / (1 + math.exp(-z)) for z in (0, 0, 2, 2)]
    assert weight.tolist() == pytest.approx(expected)
    assert edge_index.shape == (2, 4)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 999), st.floats(0.01, 0.99))
def test_tiles_do_not_show(n: int, tile: int, seed: int, eps: float) -> None:
    embedding = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    dense = embedding @ embedding.T
    expected = (dense >= math.log(eps / (1 - eps))).fill_diagonal_(False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gdm_wiring, "TILE", tile)
        logits = inner_products(embedding)
        edge_index, _ = threshold_edges(embedding, eps)
    assert torch.equal(logits, logits.T)
    torch.testing.assert_close(logits, dense.fill_diagonal_(0.0))
    made = torch.zeros(n, n, dtype=torch.bool)
    made[edge_index[0], edge_index[1]] = True
    close = (dense - math.log(eps / (1 - eps))).abs() < 1e-5
    assert torch.equal(made | close, expected | close)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 15), st.floats(0, 1), st.integers(0, 99), st.booleans())
def test_calibration_keeps_the_strongest_pairs_at_the_asked_density(
    n: int, target: float, seed: int, tie: bool
) -> None:
    embedding = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    if tie:
        embedding[n // 2 :] = embedding[-1]
    edge_index, weight = calibrated_edges(embedding, target, weighted=True)
    total = n * (n - 1) // 2
    assert edge_index.shape[1] == 2 * round(target * total)
    kept = set(pairs(edge_index))
    assert all((j, i) in kept and i != j for i, j in kept)
    logits = inner_products(embedding)
    dropped = [float(logits[i, j]) for j in range(n) for i in range(j) if (i, j) not in kept]
    strengths = [float(logits[i, j]) for i, j in kept]
    if dropped and strengths:
        assert min(strengths) >= max(dropped)
    assert weight is not None
    torch.testing.assert_close(weight, torch.sigmoid(logits[edge_index[0], edge_index[1]]))


def test_ties_are_not_all_given_to_the_first_nodes() -> None:
    degrees = np.bincount(calibrated_edges(torch.ones(20, 2), 0.2)[0][0].numpy(), minlength=20)
    assert degrees[10:].sum() > 0.3 * degrees.sum()


def test_controls() -> None:
    assert pairs(complete_edges(3)[0]) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert complete_edges(3)[1] is None
    weight = complete_edges(3, weighted=True)[1]
    assert weight is not None and weight.tolist() == [1.0] * 6
    assert no_edges()[0].shape == (2, 0) and no_edges()[0].dtype == torch.long


def test_any_embedding_of_width_d_has_at_least_n_over_d_plus_1_neighbors_on_average() -> None:
    # why the paper's threshold makes dense graphs: at most d + 1 vectors have pairwise negative products (Turan)
    for seed in range(10):
        embedding = 5 * torch.randn(40, 3, generator=torch.Generator().manual_seed(seed))
        assert threshold_edges(embedding, 0.1)[0].shape[1] / 40 >= 40 / (3 + 1) - 1
