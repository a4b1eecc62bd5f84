"""Logistic regression on the number of nodes: how much the size of a graph alone predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from torch_geometric.data import Data

from bench.learning.learners.classical import LogisticLearner, Rows
from bench.learning.learners.structure import node_count
from bench.learning.problem import Problem


class Size(LogisticLearner):
    """One feature, the logarithm of the number of nodes. C was fixed by convention before any test score was seen."""

    def describe(self, graphs: Sequence[Data], problem: Problem) -> Callable[[Sequence[Data]], Rows]:
        return lambda some: np.log([[max(node_count(graph), 1)] for graph in some])
