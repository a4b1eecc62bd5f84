"""Scores of predictions: those that are always recorded, and metrics that a dataset may choose."""

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
    """The scores of a trial."""

    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    predicted: dict[str, float]
    scores: NotRequired[dict[str, float]]  # additional metrics requested by the cell


def accuracy(truth: Classes, guess: Classes) -> float:
    """The share of graphs that are classified correctly."""
    return float(np.mean(truth == guess))


def balanced_accuracy(truth: Classes, guess: Classes) -> float:
    """Mean recall over the classes; classes without graphs do not count."""
    from sklearn.metrics import recall_score

    return float(recall_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0))


def macro_f1(truth: Classes, guess: Classes) -> float:
    """Mean F1 over the classes that occur."""
    from sklearn.metrics import f1_score

    return float(f1_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0))


def predicted_shares(guess: Classes, num_classes: int) -> dict[str, float]:
    """The share of graphs assigned to each class. A collapsed classifier assigns all of them to one class."""
    counts = np.bincount(guess, minlength=num_classes)
    return {str(label): float(count / len(guess)) for label, count in enumerate(counts)}


def scores(truth: Classes, guess: Classes, num_classes: int) -> Scores:
    """The scores recorded for every trial."""
    return {
        "accuracy": accuracy(truth, guess),
        "balanced_accuracy": balanced_accuracy(truth, guess),
        "macro_f1": macro_f1(truth, guess),
        "predicted": predicted_shares(guess, num_classes),
    }


def is_recorded_anyway(metric: str | None) -> bool:
    """Whether a metric is one of those recorded for every trial."""
    return metric is None or metric in ALWAYS


def primary(found: Scores, metric: str | None) -> float:
    """The value of a cell's primary metric among the scores."""
    usual = {
        "accuracy": found["accuracy"],
        "balanced_accuracy": found["balanced_accuracy"],
        "macro_f1": found["macro_f1"],
    }
    return {**usual, **found.get("scores", {})}[metric or USUAL_METRIC]


def metric_value(metric: str, truth: Classes, probabilities: Probabilities) -> float:
    """The value of a registered metric, validated: tables show fractions of one."""
    measure: Metric = METRICS.create(metric)
    value = float(measure(truth, probabilities))
    if not 0 <= value <= 1:
        raise UserError(f"the metric {metric} gave {value}; it must give a number from 0 to 1")
    return value


class Metric(ABC):
    """Base class of all metrics: a number from 0 to 1, where higher is better.

    `__call__` gets the true classes of the test graphs and the predicted class probabilities.
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
    """ROC AUC of the second class if there are two; otherwise the mean over the classes, one versus rest."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        from sklearn.metrics import roc_auc_score

        return _over_classes("roc_auc", roc_auc_score, truth, probabilities)


class AveragePrecision(Metric):
    """Average precision of the second class if there are two; otherwise the mean over the classes, one versus rest."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        from sklearn.metrics import average_precision_score

        return _over_classes("average_precision", average_precision_score, truth, probabilities)


def _over_classes(name: str, measure: Callable[..., float], truth: Classes, probabilities: Probabilities) -> float:
    there = np.unique(truth)
    if len(there) < 2:
        raise UserError(f"{name} needs test graphs of at least two classes, and all of these are of class {there[0]}")
    columns = [1] if probabilities.shape[1] == 2 else there.tolist()
    return float(np.mean([measure(truth == label, probabilities[:, label]) for label in columns]))
