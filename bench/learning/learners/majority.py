"""Predicts the share of each class among the labeled graphs for every graph: a classifier without any information."""

from __future__ import annotations

import numpy as np

from bench.learning.augmentation import OfflineData
from bench.learning.learners.classical import ClassicalLearner, Samples, Scored, always
from bench.learning.problem import Problem


class Majority(ClassicalLearner):
    """Ties go to the first class; with k graphs of every class, it always predicts the first one."""

    def learn(self, data: OfflineData, samples: Samples, problem: Problem) -> Scored:
        total = np.bincount(samples.classes, samples.weights, minlength=problem.num_classes)
        return always(total / total.sum())
