"""What a cell's trials say in sum; plain arithmetic, used by the mirror, the status and the end of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from bench.results.ledger import LedgerState
from bench.results.records import SCORES, TrialRecord


def ordered_trials(state: LedgerState, key: str) -> list[TrialRecord]:
    """A cell's newest records by fold and repeat."""
    trials = state.trials.get(key, {})
    return [trials[trial] for trial in sorted(trials)]


def accuracies_of(trials: Sequence[TrialRecord]) -> list[float]:
    """The accuracies of those that are done."""
    return [trial.accuracy for trial in trials if trial.done and trial.accuracy is not None]


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and sample standard deviation; the latter is not a number for a single value."""
    return (fmean(values) if values else math.nan, stdev(values) if len(values) > 1 else math.nan)


def cell_metrics(trials: Sequence[TrialRecord]) -> dict[str, float]:
    """Named figures of one cell over its finished trials, in MLflow's flat form."""
    done = [trial for trial in trials if trial.done]
    metrics: dict[str, float] = {"trials_done": len(done), "trials_failed": len(trials) - len(done)}
    if not done:
        return metrics
    for name in SCORES:
        mean, spread = mean_and_spread([getattr(trial, name) for trial in done if getattr(trial, name) is not None])
        if math.isnan(mean):
            continue
        metrics[f"{name}_mean"] = mean
        if not math.isnan(spread):
            metrics[f"{name}_std"] = spread
    for part in sorted({part for trial in done for part in trial.seconds}):
        metrics[f"seconds_{part}"] = fmean(trial.seconds.get(part, 0.0) for trial in done)
    for part in sorted({part for trial in done for part in trial.generated}):
        metrics[f"generated_{part}"] = fmean(trial.generated.get(part, 0.0) for trial in done)
    return metrics


def mean_curve(trials: Sequence[TrialRecord]) -> list[tuple[int, float]]:
    """The training loss by epoch, averaged over trials."""
    by_epoch: dict[int, list[float]] = {}
    for trial in trials:
        for epoch, loss in trial.curve:
            by_epoch.setdefault(int(epoch), []).append(loss)
    return [(epoch, fmean(losses)) for epoch, losses in sorted(by_epoch.items())]
