"""The share of each class among the labeled graphs, whatever the graph: what knowing nothing gives."""

from __future__ import annotations

import numpy as np

from bench.learning.augmentation import OfflineData
from bench.learning.learners.classical import ClassicalLearner, Samples, Scored, always
from bench.learning.problem import Problem


class Majority(ClassicalLearner):
    """Among equals the first class counts, so with k graphs of every class it names the first class always."""

    def learn(self, data: OfflineData, samples: Samples, problem: Problem) -> Scored:
        total = np.bincount(samples.classes, samples.weights, minlength=problem.num_classes)
        return always(total / total.sum())
