"""Classify a graph by its number of nodes alone: what a dataset gives away for nothing."""

from typing import Annotated

import torch
from sklearn.linear_model import LogisticRegression

from bench.learning.augmentation import offline_data
from bench.learning.learner import Fitted, Learner
from bench.registry import Tune, Within


class NodeCount(Learner):
    def __init__(self, strength: Annotated[float, Within(0, 100, above=True), Tune(0.01, 100, log=True)] = 1.0) -> None:
        self.model = LogisticRegression(C=strength)

    def fit(self, problem):
        self.num_classes, data = problem.num_classes, offline_data(problem)
        places, classes, weights = data.samples()
        self.model.fit(sizes(data.graphs)[places], classes, weights)
        return Fitted(self, generated=data.figures)

    def probabilities(self, graphs):
        rows = torch.zeros(len(graphs), self.num_classes)
        rows[:, self.model.classes_] = torch.from_numpy(self.model.predict_proba(sizes(graphs))).float()
        return rows


def sizes(graphs):
    return torch.tensor([[graph.num_nodes] for graph in graphs]).log().numpy()
