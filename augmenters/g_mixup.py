"""G-Mixup (Han et al., 2022): samples graphs from the mixed graphons of two classes, with mixed labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, GraphAugmenter, label_distribution
from augmenters.functional import any_weighted
from augmenters.graphons import Estimator, Graphon, estimate_graphon, mix_graphons, sample_edges
from bench.registry import Tune, UserError, Within
from models.sparse_features import SparseFeatures

REDRAWS = 100

# The authors' paper and code disagree; a setting of None takes its value from this preset.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"low": 0.1, "high": 0.2, "ratio": 0.2, "size": "mean", "estimator": "lg"},
    "code": {"low": 0.005, "high": 0.01, "ratio": 0.15, "size": "median", "estimator": "usvt"},
}


class Sample(NamedTuple):
    """A new graph before it is built."""

    edges: np.ndarray  # undirected pairs of graphon positions
    graphon: Graphon
    label: np.ndarray


@dataclass(frozen=True)
class GMixup(GraphAugmenter):
    """max(1, round(ratio N)) graphs, spread over `lambdas` draws of lambda ~ U(low, high) and of two classes.

    `size`: whether the number of graphon positions is the mean or the median number of nodes.
    """

    preset: Literal["paper", "code"] = "paper"
    ratio: Annotated[float | None, Within(0, 100, above=True), Tune(0.1, 1.0)] = None
    low: Annotated[float | None, Within(0, 1)] = None
    high: Annotated[float | None, Within(0, 1)] = None
    size: Literal["mean", "median"] | None = None
    estimator: Annotated[Estimator | None, Tune(choices=("lg", "usvt"))] = None
    lambdas: Annotated[int, Within(1, 1000)] = 10
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    features: FeaturePolicy = "carry"
    when: ClassVar[Literal["offline"]] = "offline"
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.value("low") > self.value("high"):
            bounds = f"low={self.value('low'):g} is above high={self.value('high'):g}"
            raise UserError(f"GMixup: {bounds}; give the range of lambda in ascending order")

    def value(self, name: str) -> Any:
        """The value of a setting; the preset's value if it is None."""
        given = getattr(self, name)
        return PRESETS[self.preset][name] if given is None else given

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Sample]:
        """Estimate the graphons of the classes; then draw lambdas, pairs of classes and Bernoulli graphs."""
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
        size = max(1, round(float(np.mean(sizes) if self.value("size") == "mean" else np.median(sizes))))
        members: dict[int, list[Data]] = {}
        for graph in graphs:
            members.setdefault(int(label_distribution(graph, context.num_classes).argmax()), []).append(graph)
        estimator = self.value("estimator")
        graphons = {c: estimate_graphon(members[c], size, estimator) for c in sorted(members)}
        if len(graphons) == 1:
            context.note("fallback_single_class")
        mixtures = [self._mixture(graphons, context.num_classes, rng) for _ in range(self.lambdas)]
        count = max(1, round(self.value("ratio") * len(graphs)))
        return [self._sample(*mixtures[i % self.lambdas], rng, context) for i in range(count)]

    def _mixture(self, graphons: dict[int, Graphon], num_classes: int, rng: Generator) -> tuple[Graphon, np.ndarray]:
        classes = list(graphons)
        first, second = rng.choice(classes, 2, replace=len(classes) < 2)
        share = rng.uniform(self.value("low"), self.value("high"))
        label = share * np.eye(num_classes)[first] + (1 - share) * np.eye(num_classes)[second]
        return mix_graphons(graphons[first], graphons[second], share), label

    def _sample(self, graphon: Graphon, label: np.ndarray, rng: Generator, context: Context) -> Sample:
        """Draw a graph with at least one edge; if none is found, use only the most probable edge and count the
        fallback.
        """
        for _ in range(REDRAWS):
            edges = sample_edges(graphon.probabilities, rng)
            if edges.shape[1]:
                return Sample(edges, graphon, label)
        context.note("fallback_empty_graph")
        if len(graphon.probabilities) < 2:
            return Sample(np.empty((2, 0), dtype=np.int64), graphon, label)
        low, high = np.triu_indices(len(graphon.probabilities), 1)
        likeliest = graphon.probabilities[low, high].argmax()
        return Sample(np.array([[low[likeliest]], [high[likeliest]]]), graphon, label)

    def apply(self, graphs: Sequence[Data], drawn: list[Sample]) -> list[Data]:
        weighted = any_weighted(graphs)
        return [build(sample, weighted) for sample in drawn]


def build(sample: Sample, weighted: bool) -> Data:
    """Build the sampled graph with both directions of each edge; positions without edges are dropped, but never all."""
    kept = np.unique(sample.edges) if sample.edges.size else np.zeros(1, dtype=np.int64)
    ends = torch.from_numpy(np.searchsorted(kept, sample.edges))
    both = torch.cat([ends, ends.flip(0)], dim=1)
    order = torch.argsort(both[0] * len(kept) + both[1])
    new = Data(edge_index=both[:, order], y=torch.from_numpy(sample.label).float().view(1, -1))
    new.num_nodes = len(kept)
    if sample.graphon.features is not None:
        new.x = as_features(sample.graphon.features[kept])
    if weighted:
        new.edge_weight = torch.ones(both.shape[1])
    return new


def as_features(rows: np.ndarray | sp.csr_array) -> Tensor:
    """Rows of a graphon's features in the format of the graphs, sparse if they are sparse."""
    return torch.from_numpy(rows).float() if isinstance(rows, np.ndarray) else SparseFeatures.of_matrix(rows)
