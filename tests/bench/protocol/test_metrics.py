"""Scores by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench.protocol.metrics import accuracy, balanced_accuracy, macro_f1, predicted_shares, scores

TRUTH = np.array([0, 0, 0, 1, 1])
GUESS = np.array([0, 0, 1, 1, 2])


def test_by_hand() -> None:
    assert accuracy(TRUTH, GUESS) == pytest.approx(3 / 5)
    assert balanced_accuracy(TRUTH, GUESS) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert macro_f1(TRUTH, GUESS) == pytest.approx((2 * 1 * (2 / 3) / (1 + 2 / 3) + 0.5) / 2)


def test_a_class_that_the_graphs_lack_does_not_count() -> None:
    assert balanced_accuracy(np.array([0, 0]), np.array([0, 2])) == pytest.approx(0.5)
    assert macro_f1(np.array([0, 0]), np.array([0, 0])) == 1.0


def test_shares_of_every_class_even_of_those_never_predicted() -> None:
    assert predicted_shares(GUESS, 4) == {"0": 0.4, "1": 0.4, "2": 0.2, "3": 0.0}
    assert max(predicted_shares(np.array([1, 1, 1]), 3).values()) == 1.0, "a collapsed classifier"


def test_all_together() -> None:
    assert scores(TRUTH, GUESS, 3) == {
        "accuracy": accuracy(TRUTH, GUESS),
        "balanced_accuracy": balanced_accuracy(TRUTH, GUESS),
        "macro_f1": macro_f1(TRUTH, GUESS),
        "predicted": {"0": 0.4, "1": 0.4, "2": 0.2},
    }
