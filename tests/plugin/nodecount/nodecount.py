"""Classify a graph by its number of nodes alone: what a dataset gives away for nothing."""

from typing import Annotated

import numpy as np
from sklearn.linear_model import LogisticRegression

from bench.learning.learners.classical import FeatureLearner
from bench.registry import Tune, Within


class NodeCount(FeatureLearner):
    def __init__(self, strength: Annotated[float, Within(0, 100, above=True), Tune(0.01, 100, log=True)] = 1.0) -> None:
        self.strength = strength

    def describe(self, graphs, problem):  # `graphs` are the training set, for whatever has to be learned first
        return lambda some: np.log([[graph.num_nodes] for graph in some])

    def classifier(self, seed):
        return LogisticRegression(C=self.strength)
