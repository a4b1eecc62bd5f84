"""Scores of predictions against the true classes: what is always recorded, and the metrics that a dataset may name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from bench.protocol.registries import METRICS, USUAL_METRIC
from bench.registry import UserError

Classes = npt.NDArray[np.int64]
ALWAYS = ("accuracy", "balanced_accuracy", "macro_f1")
Probabilities = npt.NDArray[np.float64]  # one row per graph, one column per class


class Scores(TypedDict):
    """What a trial is judged by."""

    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    predicted: dict[str, float]
    scores: NotRequired[dict[str, float]]  # what the cell asks for beside them


def accuracy(truth: Classes, guess: Classes) -> float:
    """Share of the graphs that are classified rightly."""
    return float(np.mean(truth == guess))


def balanced_accuracy(truth: Classes, guess: Classes) -> float:
    """Mean recall over the classes; one that the graphs lack has no recall and does not count."""
    from sklearn.metrics import recall_score

    return float(recall_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0))


def macro_f1(truth: Classes, guess: Classes) -> float:
    """Mean F1 over the classes that the graphs have."""
    from sklearn.metrics import f1_score

    return float(f1_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0))


def predicted_shares(guess: Classes, num_classes: int) -> dict[str, float]:
    """Share of the graphs put into each class. A classifier that has collapsed puts all of them into one."""
    counts = np.bincount(guess, minlength=num_classes)
    return {str(label): float(count / len(guess)) for label, count in enumerate(counts)}


def scores(truth: Classes, guess: Classes, num_classes: int) -> Scores:
    """Everything that is recorded of every trial's predictions."""
    return {
        "accuracy": accuracy(truth, guess),
        "balanced_accuracy": balanced_accuracy(truth, guess),
        "macro_f1": macro_f1(truth, guess),
        "predicted": predicted_shares(guess, num_classes),
    }


def is_recorded_anyway(metric: str | None) -> bool:
    """Whether a metric is one of those that every trial has."""
    return metric is None or metric in ALWAYS


def primary(found: Scores, metric: str | None) -> float:
    """The one number among the scores that a cell is judged by."""
    usual = {
        "accuracy": found["accuracy"],
        "balanced_accuracy": found["balanced_accuracy"],
        "macro_f1": found["macro_f1"],
    }
    return {**usual, **found.get("scores", {})}[metric or USUAL_METRIC]


def metric_value(metric: str, truth: Classes, probabilities: Probabilities) -> float:
    """What a registered metric says, checked: a table shows fractions of one."""
    measure: Metric = METRICS.create(metric)
    value = float(measure(truth, probabilities))
    if not 0 <= value <= 1:
        raise UserError(f"the metric {metric} gave {value}; it must give a number from 0 to 1")
    return value


class Metric(ABC):
    """Base of all metrics: a number from 0 to 1, the more the better.

    `__call__` sees the true classes of the test graphs and the predicted probabilities of each class.
    """

    @abstractmethod
    def __call__(self, truth: Classes, probabilities: Probabilities) -> float: ...


class Accuracy(Metric):
    """The share of graphs whose most probable class is the true one."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        return accuracy(truth, probabilities.argmax(axis=1))


class BalancedAccuracy(Metric):
    """The mean recall over the classes that occur in the test part."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        return balanced_accuracy(truth, probabilities.argmax(axis=1))


class MacroF1(Metric):
    """The unweighted mean of the F1 scores of the classes."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        return macro_f1(truth, probabilities.argmax(axis=1))


class RocAuc(Metric):
    """Of the second class where there are two; else the mean over the classes, each against the others."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        from sklearn.metrics import roc_auc_score

        return _over_classes("roc_auc", roc_auc_score, truth, probabilities)


class AveragePrecision(Metric):
    """Of the second class where there are two; else the mean over the classes, each against the others."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        from sklearn.metrics import average_precision_score

        return _over_classes("average_precision", average_precision_score, truth, probabilities)


def _over_classes(name: str, measure: Callable[..., float], truth: Classes, probabilities: Probabilities) -> float:
    there = np.unique(truth)
    if len(there) < 2:
        raise UserError(f"{name} needs test graphs of two classes or more, and these are all of class {there[0]}")
    columns = [1] if probabilities.shape[1] == 2 else there.tolist()
    return float(np.mean([measure(truth == label, probabilities[:, label]) for label in columns]))
