"""The common part of the learners based on scikit-learn: weighted samples in, probabilities of all classes out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch_geometric.data import Data

from bench.learning.augmentation import OfflineData, Stopwatch, offline_data
from bench.learning.learner import Learner
from bench.learning.problem import Fitted, Problem
from bench.registry import Tune, Within

Rows = npt.NDArray[np.float64]
C = Annotated[float, Within(0, 1e6, above=True), Tune(1e-3, 1e3, log=True)]
SEEDS = 2**32  # scikit-learn accepts 32 bits
ITERATIONS = 1000  # for a solver whose default limit in scikit-learn is 100


@dataclass(frozen=True)
class Samples:
    """A training set with hard labels: a graph with a soft label occurs once per class, weighted by its share."""

    places: npt.NDArray[np.int64]  # indices of graphs in the training set
    classes: npt.NDArray[np.int64]
    weights: Rows

    @classmethod
    def of(cls, data: OfflineData) -> Samples:
        places, classes, weights = (part.numpy() for part in data.samples())
        return cls(places, classes, weights.astype(np.float64))

    @property
    def only_class(self) -> int | None:
        """The class of all samples if there is only one: most classifiers reject such a training set."""
        found = np.unique(self.classes)
        return int(found[0]) if len(found) == 1 else None


@dataclass(frozen=True)
class Scored:
    """A predictor from a function that scores graphs, with one column for each class in the training set."""

    score: Callable[[Sequence[Data]], Rows]
    classes: npt.NDArray[np.int64]
    num_classes: int

    def probabilities(self, graphs: Sequence[Data]) -> Tensor:
        """Classes without labeled graphs get 0."""
        rows = np.zeros((len(graphs), self.num_classes))
        with threadpool_limits(1):
            rows[:, self.classes] = self.score(graphs)
        return torch.from_numpy(rows)


def always(shares: Rows) -> Scored:
    """A predictor with the same output for every graph."""
    return Scored(lambda graphs: np.tile(shares, (len(graphs), 1)), np.arange(len(shares)), len(shares))


class ClassicalLearner(Learner):
    """Augments once, converts soft labels to weighted samples, and leaves the rest to `learn`."""

    def fit(self, problem: Problem) -> Fitted:
        watch = Stopwatch()
        data = offline_data(problem)
        watch.lap("augment")
        samples = Samples.of(data)
        with threadpool_limits(1):  # small problems gain nothing from more, and sums keep their order
            only = samples.only_class
            predictor = (
                always(np.eye(problem.num_classes)[only]) if only is not None else self.learn(data, samples, problem)
            )
        watch.lap("fit")
        return Fitted(predictor, generated=data.figures, seconds=watch.seconds)

    @abstractmethod
    def learn(self, data: OfflineData, samples: Samples, problem: Problem) -> Scored:
        """A predictor from a training set with at least two classes."""


class FeatureLearner(ClassicalLearner):
    """A scikit-learn classifier on one feature vector per graph."""

    @abstractmethod
    def describe(self, graphs: Sequence[Data], problem: Problem) -> Callable[[Sequence[Data]], Rows]:
        """A function from graphs to feature vectors; anything it has to know in advance comes from these training
        graphs.
        """

    @abstractmethod
    def classifier(self, seed: int) -> Any:
        """An estimator with `predict_proba` that accepts sample weights."""

    def learn(self, data: OfflineData, samples: Samples, problem: Problem) -> Scored:
        from sklearn.preprocessing import StandardScaler

        rows_of = self.describe(data.graphs, problem)
        rows = rows_of(data.graphs)[samples.places]
        scaler = StandardScaler().fit(rows, sample_weight=samples.weights)
        model = self.classifier(problem.init_seed % SEEDS)
        model.fit(scaler.transform(rows), samples.classes, sample_weight=samples.weights)
        return Scored(
            lambda graphs: model.predict_proba(scaler.transform(rows_of(graphs))), model.classes_, problem.num_classes
        )


class LogisticLearner(FeatureLearner):
    """Logistic regression on standardized features, with scikit-learn's default C = 1."""

    def __init__(self, c: C = 1.0) -> None:
        self.c = c

    def classifier(self, seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=self.c, max_iter=ITERATIONS, random_state=seed)
