"""Scores of predicted classes against the true ones."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt
from sklearn.metrics import f1_score, recall_score

Classes = npt.NDArray[np.int64]


class Scores(TypedDict):
    """What a trial is judged by."""

    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    predicted: dict[str, float]


def accuracy(truth: Classes, guess: Classes) -> float:
    """Share of the graphs that are classified rightly."""
    return float(np.mean(truth == guess))


def balanced_accuracy(truth: Classes, guess: Classes) -> float:
    """Mean recall over the classes; one that the graphs lack has no recall and does not count."""
    return float(recall_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0))


def macro_f1(truth: Classes, guess: Classes) -> float:
    """Mean F1 over the classes that the graphs have."""
    return float(f1_score(truth, guess, labels=np.unique(truth), average="macro", zero_division=0))


def predicted_shares(guess: Classes, num_classes: int) -> dict[str, float]:
    """Share of the graphs put into each class. A classifier that has collapsed puts all of them into one."""
    counts = np.bincount(guess, minlength=num_classes)
    return {str(label): float(count / len(guess)) for label, count in enumerate(counts)}


def scores(truth: Classes, guess: Classes, num_classes: int) -> Scores:
    """Everything that is recorded of a trial's predictions."""
    return {
        "accuracy": accuracy(truth, guess),
        "balanced_accuracy": balanced_accuracy(truth, guess),
        "macro_f1": macro_f1(truth, guess),
        "predicted": predicted_shares(guess, num_classes),
    }
