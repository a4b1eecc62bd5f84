"""Trials that put all test graphs into one class: seen in the predictions, or told by the scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.protocol.metrics import scores
from bench.results.records import TrialRecord
from bench.results.summary import cell_metrics, collapsed_share, has_collapsed


def record(guess: list[int], truth: list[int], told: bool) -> TrialRecord:
    found = scores(np.array(truth), np.array(guess), 3)
    if not told:
        found["predicted"] = {}
    return TrialRecord("c", 0, 0, "done", **found)


TRUTH = [0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    ("guess", "collapsed"),
    [([1] * 6, True), ([0] * 6, True), ([0, 0, 0, 0, 0, 1], False), (TRUTH, False), ([1, 1, 1, 2, 2, 0], False)],
)
def test_one_class_for_all_is_a_collapse(guess: list[int], collapsed: bool, told: bool) -> None:
    assert has_collapsed(record(guess, TRUTH, told)) is collapsed


def test_every_guess_of_small_test_sets_is_told_right_from_its_scores() -> None:
    truth = [0, 0, 1, 2]
    for code in range(3**4):
        guess = [code // 3**place % 3 for place in range(4)]
        assert has_collapsed(record(guess, truth, told=False)) is (len(set(guess)) == 1), guess


def test_the_share_counts_finished_trials_that_tell() -> None:
    trials = [record([1] * 6, TRUTH, True), record(TRUTH, TRUTH, False), TrialRecord("c", 0, 1, "failed")]
    assert collapsed_share(trials) == cell_metrics(trials)["collapsed_share"] == 0.5
    bare = TrialRecord("c", 0, 2, "done", accuracy=0.5)
    assert has_collapsed(bare) is None and math.isnan(collapsed_share([bare]))
