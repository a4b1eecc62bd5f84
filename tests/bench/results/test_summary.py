from __future__ import annotations

import math

import numpy as np

from bench.results.ledger import LedgerState
from bench.results.records import TrialRecord
from bench.results.summary import cell_metrics, mean_and_spread, mean_curve, ordered_trials


def result(fold: int, accuracy: float) -> TrialRecord:
    record = TrialRecord("c", fold, 0, "done", None, accuracy, accuracy / 2, accuracy / 4)
    record.seconds, record.generated = {"train": 2.0 * fold}, {"density": 0.5}
    record.curve = [[1, 2.0], [4, 1.0 * fold]]
    return record


def test_known_scores_give_known_figures() -> None:
    trials = [result(fold, accuracy) for fold, accuracy in enumerate([0.5, 0.6, 0.7])]
    trials.append(TrialRecord("c", 3, 0, "failed", "x"))
    metrics = cell_metrics(trials)
    assert metrics["trials_done"] == 3
    assert metrics["trials_failed"] == 1
    assert math.isclose(metrics["accuracy"], 60)
    assert math.isclose(metrics["accuracy_std"], float(100 * np.std([0.5, 0.6, 0.7], ddof=1)), abs_tol=1e-4)
    assert next(iter(metrics)) == "accuracy", "what MLflow compares by"
    assert math.isclose(metrics["balanced_accuracy"], 30)
    assert math.isclose(metrics["macro_f1"], 15)
    assert math.isclose(metrics["seconds_train"], 2.0)
    assert math.isclose(metrics["generated_density"], 0.5)


def test_nothing_done_is_no_mean() -> None:
    assert cell_metrics([TrialRecord("c", 0, 0, "failed", "x")]) == {"trials_done": 0, "trials_failed": 1}
    assert all(math.isnan(value) for value in mean_and_spread([]))


def test_one_value_has_no_spread() -> None:
    mean, spread = mean_and_spread([0.5])
    assert mean == 0.5
    assert math.isnan(spread)
    assert "accuracy_std" not in cell_metrics([result(0, 0.5)])


def test_the_curve_is_averaged_by_epoch() -> None:
    assert mean_curve([result(0, 0.5), result(2, 0.5)]) == [(1, 2.0), (4, 1.0)]


def test_trials_come_by_fold_and_repeat_whatever_the_order_of_the_ledger() -> None:
    state = LedgerState.of([result(2, 0.1), result(0, 0.2), result(1, 0.3)])
    assert [record.fold for record in ordered_trials(state, "c")] == [0, 1, 2]
