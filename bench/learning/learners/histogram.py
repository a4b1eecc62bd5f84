"""Logistic regression on the number of nodes with each label, or with each degree if there are no labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from torch_geometric.data import Data

from bench.learning.learners.classical import C, LogisticLearner, Rows
from bench.learning.learners.structure import degrees, has_labels
from bench.learning.problem import Problem
from bench.registry import Tune

HIGHEST_DEGREE = 64  # nodes of higher degree share the last bin


class Histogram(LogisticLearner):
    """Counts, as in the vertex histogram kernel; `shares` divides them by the number of nodes.

    Fixed by convention before any test score was seen: counts, standardized, C = 1.
    """

    def __init__(self, c: C = 1.0, shares: Annotated[bool, Tune()] = False) -> None:
        super().__init__(c)
        self.shares = shares

    def describe(self, graphs: Sequence[Data], problem: Problem) -> Callable[[Sequence[Data]], Rows]:
        counts = histogram_of(problem.graphs)
        if not self.shares:
            return counts
        return lambda some: (rows := counts(some)) / np.maximum(rows.sum(axis=1, keepdims=True), 1)


def histogram_of(graphs: Sequence[Data]) -> Callable[[Sequence[Data]], Rows]:
    """A function that counts labels, or degrees if these graphs have no labels.

    A node with a mixed label contributes to each of its labels by its share.
    """
    if has_labels(graphs):
        return lambda some: np.stack([graph.x.sum(dim=0).double().numpy() for graph in some])
    top = min(max(int(degrees(graph).max(initial=0)) for graph in graphs), HIGHEST_DEGREE)
    return lambda some: np.stack(
        [np.bincount(np.minimum(degrees(graph), top), minlength=top + 1).astype(np.float64) for graph in some]
    )
