"""Summaries of a cell's trials, used by the mirror, the status and the end of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from bench.results.ledger import LedgerState
from bench.results.records import SCORES, TrialRecord

DECIMALS = 4  # of figures for a table in a browser; the trials have all digits


def ordered_trials(state: LedgerState, key: str) -> list[TrialRecord]:
    """A cell's newest records by fold and repeat."""
    trials = state.trials.get(key, {})
    return [trials[trial] for trial in sorted(trials)]


def accuracies_of(trials: Sequence[TrialRecord], metric: str | None = None) -> list[float]:
    """The accuracies of the finished trials, or the values of another metric."""
    found = (trial.score(metric) for trial in trials if trial.done)
    return [value for value in found if value is not None]


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; the latter is NaN for a single value."""
    return (fmean(values) if values else math.nan, stdev(values) if len(values) > 1 else math.nan)


def has_collapsed(trial: TrialRecord) -> bool | None:
    """Whether all test graphs were assigned to one class; None if the record does not show it.

    Without the predicted classes, the scores are used: a collapsed model has a balanced accuracy of one over the number
    of classes, and a macro F1 that follows from the accuracy.
    """
    if trial.predicted:
        return max(trial.predicted.values()) == 1
    accuracy, balanced, f1 = trial.accuracy, trial.balanced_accuracy, trial.macro_f1
    if accuracy is None or balanced is None or f1 is None:
        return None
    classes = round(1 / balanced) if balanced > 0 else 0
    if classes < 2 or not math.isclose(balanced, 1 / classes, abs_tol=1e-9):
        return False
    return math.isclose(f1 * classes, 2 * accuracy / (1 + accuracy), abs_tol=1e-9)


def collapsed_share(trials: Sequence[TrialRecord]) -> float:
    """The share of finished trials that assign all test graphs to one class; NaN if no record shows it."""
    told = [found for found in map(has_collapsed, (trial for trial in trials if trial.done)) if found is not None]
    return fmean(told) if told else math.nan


def cell_metrics(trials: Sequence[TrialRecord]) -> dict[str, float]:
    """The metrics of a cell over its finished trials, in MLflow's flat form; scores are in percent."""
    done = [trial for trial in trials if trial.done]
    counts: dict[str, float] = {"trials_done": len(done), "trials_failed": len(trials) - len(done)}
    if not done:
        return counts
    metrics: dict[str, float] = {}
    for name in (*SCORES, *sorted({name for trial in done for name in trial.scores})):
        mean, spread = mean_and_spread(accuracies_of(done, name))
        if math.isnan(mean):
            continue
        metrics[name] = 100 * mean
        if not math.isnan(spread):
            metrics[f"{name}_std"] = 100 * spread
    collapsed = collapsed_share(done)
    if not math.isnan(collapsed):
        metrics["collapsed_share"] = collapsed
    for part in sorted({part for trial in done for part in trial.seconds}):
        metrics[f"seconds_{part}"] = fmean(trial.seconds.get(part, 0.0) for trial in done)
    for part in sorted({part for trial in done for part in trial.generated}):
        metrics[f"generated_{part}"] = fmean(trial.generated.get(part, 0.0) for trial in done)
    # MLflow compares by the first one and shows all of its digits
    return {name: round(value, DECIMALS) for name, value in metrics.items()} | counts


def mean_curve(trials: Sequence[TrialRecord]) -> list[tuple[int, float]]:
    """The training loss by epoch, averaged over trials."""
    by_epoch: dict[int, list[float]] = {}
    for trial in trials:
        for epoch, loss in trial.curve:
            by_epoch.setdefault(int(epoch), []).append(loss)
    return [(epoch, fmean(losses)) for epoch, losses in sorted(by_epoch.items())]
