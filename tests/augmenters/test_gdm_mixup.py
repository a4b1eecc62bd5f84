"""Dual mixup of two small graphs by hand (Eq. 9-13)."""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters.functional import density
from augmenters.gdm_mixup import DualMixup, Mixing, by_rank, draw_mixing, mix_rows


def graph(n: int, pairs: list[tuple[int, int]], label: int, fill: float) -> Data:
    both = torch.tensor(pairs + [(j, i) for i, j in pairs], dtype=torch.long).reshape(-1, 2).T
    return Data(x=torch.full((n, 2), fill), edge_index=both, y=torch.tensor([label]))


SMALL, LARGE = graph(2, [(0, 1)], 0, 1.0), graph(3, [(0, 1), (1, 2)], 1, 10.0)
MIXING = Mixing(0, 1, 0.25, np.array([2, 0]))  # node 0 of the smaller goes to place 2, node 1 to place 0
H_SMALL, H_LARGE = torch.tensor([[4.0, 0.0], [0.0, 8.0]]), torch.tensor([[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0]])


def test_rows_are_padded_placed_and_mixed() -> None:
    first, second = torch.tensor([[4.0], [8.0]]), torch.tensor([[100.0], [200.0], [300.0]])
    assert mix_rows(first, second, MIXING).tolist() == [[77.0], [150.0], [226.0]]
    swapped = Mixing(1, 0, 0.75, MIXING.places)
    assert mix_rows(second, first, swapped).tolist() == [[77.0], [150.0], [226.0]]  # the smaller one is placed, always


def test_equal_sizes_permute_the_second() -> None:
    first, second = torch.tensor([[4.0], [8.0]]), torch.tensor([[100.0], [200.0]])
    assert mix_rows(first, second, Mixing(0, 1, 0.5, np.array([1, 0]))).tolist() == [[102.0], [54.0]]


def test_new_graph_by_hand() -> None:
    made = DualMixup("threshold", 0.1, 3, False)(SMALL, LARGE, (H_SMALL, H_LARGE), MIXING)
    # H = 0.25 [[0, 8], [0, 0], [4, 0]] + 0.75 H_LARGE = [[3, 2], [0, 3], [-2, 0]]: products 01: 6, 02: -6, 12: 0
    assert made.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert made.x.tolist() == [[7.75, 7.75], [7.5, 7.5], [7.75, 7.75]]
    assert made.y.tolist() == [[0.25, 0.75, 0.0]]
    assert made.num_nodes == 3 and "edge_weight" not in made


def test_weights_of_weighted_originals_are_kept() -> None:
    made = DualMixup("threshold", 0.1, 2, True)(SMALL, LARGE, (H_SMALL, H_LARGE), MIXING)
    torch.testing.assert_close(made.edge_weight, torch.sigmoid(torch.tensor([6.0, 6.0, 0.0, 0.0])))


@pytest.mark.parametrize("wiring", ["threshold", "calibrated"])
def test_lambda_one_and_zero_are_the_parents(wiring: Literal["threshold", "calibrated"]) -> None:
    mixup = DualMixup(wiring, 0.1, 2, False)
    for share, parent in ((1.0, SMALL), (0.0, LARGE)):
        made = mixup(SMALL, LARGE, (H_SMALL, H_LARGE), Mixing(0, 1, share, np.array([0, 1])))
        torch.testing.assert_close(made.x[: parent.num_nodes], parent.x)
        assert made.y.argmax() == parent.y


def test_density_of_the_calibrated_is_the_mix_of_the_parents() -> None:
    rng = np.random.default_rng(0)
    first = graph(20, [(i, j) for j in range(20) for i in range(j) if rng.random() < 0.7], 0, 1.0)
    second = graph(30, [(i, j) for j in range(30) for i in range(j) if rng.random() < 0.1], 1, 1.0)
    embeddings = torch.randn(20, 8), torch.randn(30, 8)
    for share in (0.0, 0.3, 1.0):
        mixing = Mixing(0, 1, share, rng.permutation(30)[:20])
        made = DualMixup("calibrated", 0.1, 2, False)(first, second, embeddings, mixing)
        assert density(made) == pytest.approx(share * density(first) + (1 - share) * density(second), abs=1 / 435)


def test_controls_read_no_embedding() -> None:
    assert density(DualMixup("complete", 0.1, 2, False)(SMALL, LARGE, None, MIXING)) == 1.0
    lonely = DualMixup("identity", 0.1, 2, False)(SMALL, LARGE, None, MIXING)
    assert lonely.edge_index.shape == (2, 0) and lonely.num_nodes == 3


def test_graphs_without_features_stay_without() -> None:
    bare = [copy.copy(SMALL), copy.copy(LARGE)]
    for data, n in zip(bare, (2, 3), strict=True):
        del data.x
        data.num_nodes = n
    made = DualMixup("threshold", 0.1, 2, False)(*bare, (H_SMALL, H_LARGE), MIXING)
    assert made.x is None and made.num_nodes == 3


def test_drawing_places_the_smaller_graph_at_random() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_mixing((0, 1), np.array([5, 3]), 1.0, 1.0, rng) for _ in range(300)]
    assert all(len(set(m.places.tolist())) == 3 and m.places.max() < 5 for m in drawn)
    assert {int(m.places[0]) for m in drawn} == set(range(5))
    assert 0.4 < np.mean([m.share for m in drawn]) < 0.6
    skewed = [draw_mixing((0, 1), np.array([5, 3]), 4.0, 1.0, rng).share for _ in range(300)]
    assert 0.75 < np.mean(skewed) < 0.85  # Beta(4, 1) has the mean 0.8


def test_padded_rows_have_a_value_of_their_own_where_padded_graphs_are_encoded() -> None:
    first, second = torch.tensor([[4.0], [8.0]]), torch.tensor([[100.0], [200.0], [300.0]])
    pad = torch.tensor([20.0])
    assert mix_rows(first, second, MIXING, pad).tolist() == [[77.0], [155.0], [226.0]]
    assert mix_rows(second, first, Mixing(1, 0, 0.75, MIXING.places), pad).tolist() == [[77.0], [155.0], [226.0]]
    assert mix_rows(first, first, Mixing(0, 0, 0.5, np.array([1, 0])), pad).tolist() == [[6.0], [6.0]]


def test_nodes_of_equal_rank_meet() -> None:
    star = graph(4, [(2, 0), (2, 1), (2, 3)], 0, 1.0)  # by degree: 2, then 0, 1, 3
    path = graph(3, [(0, 1), (1, 2)], 1, 1.0)  # by degree: 1, then 0, 2
    assert by_rank(path, star).tolist() == by_rank(star, path).tolist() == [0, 2, 1]
    assert by_rank(path, graph(3, [(0, 2), (0, 1)], 0, 1.0)).tolist() == [1, 0, 2]  # the second is placed on the first
