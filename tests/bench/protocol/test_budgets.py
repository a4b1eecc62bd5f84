from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.protocol.budgets import HIDDEN, labeled_graphs, validation_budget
from bench.protocol.seeds import TrialSeeds
from bench.registry import UserError

SEEDS = TrialSeeds("TINY", "stratified", 0, 0)
LABELS = np.arange(300) % 3
TRAIN = np.arange(0, 300, 2)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9), st.integers(0, 2))
def test_draws_are_nested_and_k_of_each_class(k: int, more: int, fold: int, repeat: int) -> None:
    seeds = replace(SEEDS, fold=fold, repeat=repeat)
    small, large = labeled_graphs(LABELS, TRAIN, k, seeds), labeled_graphs(LABELS, TRAIN, k + more, seeds)
    assert set(small) <= set(large) <= set(TRAIN)
    assert np.bincount(LABELS[small]).tolist() == [min(k, 50)] * 3
    assert len(set(small)) == len(small)


def test_the_draw_of_a_part_needs_no_other_label() -> None:
    hidden = np.full_like(LABELS, HIDDEN)
    hidden[TRAIN] = LABELS[TRAIN]
    assert np.array_equal(labeled_graphs(hidden, TRAIN, 5, SEEDS), labeled_graphs(LABELS, TRAIN, 5, SEEDS))


def test_the_draw_hangs_on_dataset_splits_fold_and_repeat() -> None:
    first = labeled_graphs(LABELS, TRAIN, 5, SEEDS)
    assert np.array_equal(first, labeled_graphs(LABELS, TRAIN[::-1], 5, SEEDS))
    for other in (
        replace(SEEDS, dataset="OTHER"),
        replace(SEEDS, splits="CHEMICAL"),
        replace(SEEDS, fold=1),
        replace(SEEDS, repeat=1),
    ):
        assert set(first) != set(labeled_graphs(LABELS, TRAIN, 5, other))


def test_a_small_class_gives_all_it_has_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    labels = np.array([0] * 20 + [1] * 3)
    seeds = replace(SEEDS, dataset="SMALL")
    with caplog.at_level(logging.WARNING, "bench"):
        for _ in range(3):
            drawn = labeled_graphs(labels, np.arange(23), 5, seeds)
    assert np.bincount(labels[drawn]).tolist() == [5, 3]
    assert [record.getMessage() for record in caplog.records] == [
        "SMALL, fold 0, train part: class 1 has 3 of the 5 graphs requested; all of them are used"
    ]


def test_a_class_that_is_absent_from_the_part_is_left_out() -> None:
    drawn = labeled_graphs(np.array([0, 0, 1]), [0, 1], 1, replace(SEEDS, dataset="ABSENT"))
    assert drawn.tolist() in ([0], [1])


@pytest.mark.parametrize("k", [0, -3])
def test_a_budget_below_one_is_refused(k: int) -> None:
    with pytest.raises(UserError, match=f"k={k} .* at least one labeled graph per class"):
        labeled_graphs(LABELS, TRAIN, k, SEEDS)
    with pytest.raises(UserError, match=f"k={k}"):
        validation_budget(LABELS, TRAIN, k, SEEDS)


def test_the_validation_budget_has_a_stream_of_its_own() -> None:
    assert set(validation_budget(LABELS, TRAIN, 5, SEEDS)) != set(labeled_graphs(LABELS, TRAIN, 5, SEEDS))


def test_draws_never_change() -> None:
    """A changed draw would silently make every stored result another experiment."""
    labels, seeds = np.repeat([0, 1], 20), TrialSeeds("PROTEINS", "CHEMICAL", 3, 1)
    assert labeled_graphs(labels, np.arange(40), 3, seeds).tolist() == [12, 11, 3, 25, 23, 20]
    assert validation_budget(labels, np.arange(40), 3, seeds).tolist() == [17, 0, 18, 28, 35, 32]


def test_a_class_with_just_k_graphs_is_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bench"):
        labeled_graphs(np.repeat([0, 1], 5), np.arange(10), 5, replace(SEEDS, dataset="JUST"))
    assert not caplog.records
