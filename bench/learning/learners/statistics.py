"""A random forest on simple graph statistics: size, density, degrees, triangles, node labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from torch_geometric.data import Data

from bench.learning.learners.classical import FeatureLearner, Rows
from bench.learning.learners.histogram import histogram_of
from bench.learning.learners.structure import Kept, degrees, node_count, triangles
from bench.learning.problem import Problem
from bench.registry import Tune, Within

NAMES = (
    "nodes",
    "edges",
    "density",
    "mean degree",
    "standard deviation of degrees",
    "highest degree",
    "share of isolated nodes",
    "triangles",
    "mean clustering",
    "transitivity",
)
_KEPT: Kept[Rows] = Kept(2**20)


class Statistics(FeatureLearner):
    """500 trees, otherwise scikit-learn's defaults: fixed by convention before any test score was seen."""

    def __init__(
        self,
        trees: Annotated[int, Within(1, 100_000)] = 500,
        depth: Annotated[int | None, Within(1, 1000), Tune(1, 16)] = None,
        features: Annotated[Literal["sqrt", "log2", "all"], Tune()] = "sqrt",
    ) -> None:
        self.trees, self.depth, self.features = trees, depth, features

    def describe(self, graphs: Sequence[Data], problem: Problem) -> Callable[[Sequence[Data]], Rows]:
        counts = histogram_of(problem.graphs)

        def rows(some: Sequence[Data]) -> Rows:
            numbers = np.stack(_KEPT.fetch(some, "statistics", lambda new: [graph_statistics(graph) for graph in new]))
            found = counts(some)
            return np.hstack([numbers, found / np.maximum(found.sum(axis=1, keepdims=True), 1)])

        return rows

    def classifier(self, seed: int) -> Any:
        from sklearn.ensemble import RandomForestClassifier

        features = None if self.features == "all" else self.features
        return RandomForestClassifier(self.trees, max_depth=self.depth, max_features=features, random_state=seed)


def graph_statistics(graph: Data) -> Rows:
    """The statistics in `NAMES`; for a graph with one node or no edges, undefined ones are zero."""
    n, degree, corners = node_count(graph), degrees(graph).astype(np.float64), triangles(graph)
    edges, possible = degree.sum() / 2, degree * (degree - 1) / 2
    local = np.divide(corners, possible, out=np.zeros(n), where=possible > 0)
    return np.array(
        [
            n,
            edges,
            2 * edges / (n * (n - 1)) if n > 1 else 0.0,
            degree.mean() if n else 0.0,
            degree.std() if n else 0.0,
            degree.max(initial=0),
            float(np.mean(degree == 0)) if n else 0.0,
            corners.sum() / 3,
            local.mean() if n else 0.0,
            corners.sum() / possible.sum() if possible.sum() else 0.0,
        ]
    )
