"""Difficulty rules (Eq. 14, 15), their fallbacks and the three subsets."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from augmenters.base import Context
from augmenters.samplers import (
    PRETRAINING_EPOCHS,
    balanced_pairs,
    choose_pairs,
    easy_graphs,
    low_by_accuracy,
    low_by_uncertainty,
    lower_half,
    pairs_within,
)

P = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.55, 0.45]])
LABELS = np.array([0, 0, 1, 1])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class Notes(Counter[str]):
    def __call__(self, name: str) -> None:
        self[name] += 1


def test_accuracy_rule() -> None:
    assert low_by_accuracy(P, LABELS).tolist() == [True, False, True, False]


def test_uncertainty_rule() -> None:
    # entropies 0.325, 0.673, 0.500, 0.688: the median is 0.587
    assert low_by_uncertainty(P).tolist() == [True, False, True, False]
    assert low_by_uncertainty(P[:3]).tolist() == [True, False, True]  # at the median counts as low
    certain = np.array([[1.0, 0.0], [0.5, 0.5]])
    assert low_by_uncertainty(certain).tolist() == [True, False]  # 0 log 0 is 0


def test_all_right_falls_back_to_the_true_class_probability() -> None:
    notes, right = Notes(), np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.45, 0.55]])
    assert easy_graphs("acc", right, LABELS, rng(), notes).tolist() == [True, False, True, False]
    assert notes == {"fallback_acc_empty_pool": 1}


def test_all_wrong_falls_back_too() -> None:
    notes, wrong = Notes(), np.array([[0.1, 0.9], [0.4, 0.6], [0.8, 0.2], [0.7, 0.3]])
    assert easy_graphs("acc", wrong, LABELS, rng(), notes).tolist() == [False, True, False, True]
    assert notes == {"fallback_acc_empty_pool": 1}


def test_equal_entropies_are_split_at_random() -> None:
    notes = Notes()
    splits = {tuple(easy_graphs("unc", np.full((4, 2), 0.5), LABELS, rng(seed), notes).tolist()) for seed in range(20)}
    assert notes == {"fallback_unc_empty_pool": 20}
    assert len(splits) > 1 and all(sum(split) == 2 for split in splits)


def test_no_fallback_is_noted_where_none_is_needed() -> None:
    notes = Notes()
    for rule in ("acc", "unc"):
        easy_graphs(rule, P, LABELS, rng(), notes)
    assert not notes


def test_lower_half_takes_the_larger_half_when_odd() -> None:
    assert lower_half(np.array([3.0, 1.0, 2.0]), rng()).tolist() == [False, True, True]


@given(st.lists(st.booleans(), min_size=2, max_size=12), st.integers(0, 7), st.integers(0, 99))
def test_three_subsets_of_equal_size_from_their_pools(easy: list[bool], size: int, seed: int) -> None:
    low = np.array(easy)
    if low.all() or not low.any():
        low[0] = not low[0]
    notes = Notes()
    subsets = balanced_pairs(low, size, "none", rng(seed), notes)
    assert {name: len(pairs) for name, pairs in subsets.items()} == {"low": size, "med": size, "high": size}
    assert all(low[i] and low[j] for i, j in subsets["low"])
    assert all(low[i] and not low[j] for i, j in subsets["med"])
    assert all(not low[i] and not low[j] for i, j in subsets["high"])
    for name, pool in (("low", low.sum()), ("high", (~low).sum())):
        assert all((i == j) == (pool == 1) for i, j in subsets[name])
    assert notes["fallback_pool_of_one"] == int(low.sum() == 1) + int((~low).sum() == 1)


@pytest.mark.parametrize("without", ["low", "med", "high"])
def test_a_subset_left_out_leaves_the_others_their_size(without: Literal["low", "med", "high"]) -> None:
    subsets = balanced_pairs(np.array([True, True, False, False]), 3, without, rng(), Notes())
    assert without not in subsets
    assert [len(pairs) for pairs in subsets.values()] == [3, 3]


def test_one_graph_alone_is_mixed_with_itself() -> None:
    notes = Notes()
    subsets = balanced_pairs(np.array([True]), 1, "none", rng(), notes)
    assert subsets == {"low": [(0, 0)], "med": [(0, 0)], "high": [(0, 0)]}
    assert notes == {"fallback_single_graph": 1, "fallback_pool_of_one": 2}


def test_random_pairs_are_uniform_over_ordered_pairs_of_different_graphs() -> None:
    counts = Counter(pairs_within(np.array([4, 7, 9]), 6000, rng(), Notes()))
    assert len(counts) == 6 and all(i != j for i, j in counts)
    assert all(850 < count < 1150 for count in counts.values())


def graphs() -> list[Data]:
    return [Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([y])) for y in LABELS]


@pytest.mark.parametrize("sampler", ["acc", "unc"])
def test_difficulty_comes_from_a_pretrained_classifier(sampler: Literal["acc", "unc"]) -> None:
    asked = []

    def classify(given: object, epochs: int) -> torch.Tensor:
        asked.append(epochs)
        return torch.from_numpy(P).float()

    pairs = choose_pairs(sampler, graphs(), 5, "none", rng(), Context(2, classify, lambda key: rng()))
    assert asked == [PRETRAINING_EPOCHS] == [100]
    assert len(pairs) == 15
    assert {i for pair in pairs[:5] for i in pair} == {0, 2}
    assert {i for pair in pairs[10:] for i in pair} == {1, 3}


def test_random_sampling_trains_nothing() -> None:
    def classify(given: object, epochs: int) -> torch.Tensor:
        raise RuntimeError("rand needs no classifier")

    assert len(choose_pairs("rand", graphs(), 2, "none", rng(), Context(2, classify, lambda key: rng()))) == 6
