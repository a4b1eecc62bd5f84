"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011) with a support vector machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy import sparse
from torch_geometric.data import Data

from bench.learning.augmentation import OfflineData
from bench.learning.learners.classical import SEEDS, C, ClassicalLearner, Rows, Samples, Scored
from bench.learning.learners.structure import Kept, content, has_labels, node_count, pairs
from bench.learning.problem import Problem
from bench.registry import Tune, Within

Names = npt.NDArray[np.uint64]
Histogram = tuple[Names, Rows]  # the names of a graph's subtrees and their counts
_KEPT: Kept[Histogram] = Kept(2**24)


class WeisfeilerLehman(ClassicalLearner):
    """The normalized kernel with h = 5 and C = 1: fixed by convention before any test score was seen.

    Initial names are the node labels; if the features are not one-hot, equal rows are equal labels. Edge weights are
    ignored. In a mixed graph, a node counts as its most frequent label. The subtrees of a graph are computed once for
    all trials of a process.
    """

    def __init__(self, h: Annotated[int, Within(0, 20), Tune(1, 7)] = 5, c: C = 1.0) -> None:
        self.h, self.c = h, c

    def learn(self, data: OfflineData, samples: Samples, problem: Problem) -> Scored:
        from sklearn.svm import SVC

        hard = has_labels(problem.graphs) and all(map(is_one_hot, problem.graphs))
        how = f"wl {self.h} {hard}"

        def names_of(graphs: list[Data]) -> list[Histogram]:
            return subtree_histograms(graphs, self.h, hard)

        known = {content(graph) for graph in problem.graphs}
        new = [graph for graph in data.graphs if content(graph) not in known]  # generated graphs are not needed again
        made = dict(zip(map(content, new), names_of(new), strict=True))
        old = _KEPT.fetch(problem.graphs, how, names_of)
        made |= dict(zip(map(content, problem.graphs), old, strict=True))
        kernel = SubtreeKernel.of([made[content(graph)] for graph in data.graphs])
        places = samples.places
        model = SVC(C=self.c, kernel="precomputed", random_state=problem.init_seed % SEEDS)
        model.fit(kernel.within()[np.ix_(places, places)], samples.classes, sample_weight=samples.weights)

        def score(graphs: Sequence[Data]) -> Rows:
            values = model.decision_function(kernel.against(_KEPT.fetch(graphs, how, names_of))[:, places])
            if values.ndim == 1:  # with two classes, scores refer to the second
                values = np.stack([-values, values], axis=1) / 2
            return softmax(values)

        return Scored(score, model.classes_, problem.num_classes)


@dataclass(frozen=True)
class SubtreeKernel:
    """Inner products of subtree counts, normalized by the norms of the two graphs' counts."""

    vocabulary: Names
    counts: sparse.csr_array  # of the training graphs, one row each
    lengths: Rows

    @classmethod
    def of(cls, histograms: Sequence[Histogram]) -> SubtreeKernel:
        vocabulary = np.unique(np.concatenate([names for names, _ in histograms]))
        return cls(vocabulary, _counts(histograms, vocabulary), _lengths(histograms))

    def within(self) -> Rows:
        """The training graphs against each other."""
        return self._normalized((self.counts @ self.counts.T).toarray(), self.lengths)

    def against(self, histograms: Sequence[Histogram]) -> Rows:
        """Other graphs (rows) against the training graphs (columns)."""
        return self._normalized((_counts(histograms, self.vocabulary) @ self.counts.T).toarray(), _lengths(histograms))

    def _normalized(self, products: Rows, lengths: Rows) -> Rows:
        values: Rows = products / np.outer(lengths, self.lengths)
        return values


def _lengths(histograms: Sequence[Histogram]) -> Rows:
    return np.sqrt([max(float(counts @ counts), 1.0) for _, counts in histograms])


def _counts(histograms: Sequence[Histogram], vocabulary: Names) -> sparse.csr_array:
    """One row per graph, one column per known name; names that no training graph has are left out."""
    names = np.concatenate([names for names, _ in histograms])
    counts = np.concatenate([counts for _, counts in histograms])
    rows = np.repeat(np.arange(len(histograms)), [len(names) for names, _ in histograms])
    columns = np.minimum(np.searchsorted(vocabulary, names), len(vocabulary) - 1)
    known = vocabulary[columns] == names
    shape = (len(histograms), len(vocabulary))
    return sparse.csr_array((counts[known], (rows[known], columns[known])), shape=shape)


def is_one_hot(graph: Data) -> bool:
    """Whether each node has one label, written as a row with a single 1."""
    x = graph.x
    return x is not None and bool(((x == 0) | (x == 1)).all()) and bool((x.sum(dim=1) == 1).all())


def subtree_histograms(graphs: Sequence[Data], h: int, hard: bool) -> list[Histogram]:
    """The number of occurrences of each subtree pattern of depth 0 to h in each graph.

    The name of a pattern is a 64-bit hash of its root's name and its children's names, so it is the same in every
    process and needs no dictionary. Among five million patterns, the probability of a collision is below 10^-6.
    """
    if not graphs:
        return []
    sizes = np.array([node_count(graph) for graph in graphs])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ends = [pairs(graph) for graph in graphs]
    low = np.concatenate([start + one for start, (one, _) in zip(starts, ends, strict=True)])
    high = np.concatenate([start + other for start, (_, other) in zip(starts, ends, strict=True)])
    names = np.concatenate([first_names(graph, hard) for graph in graphs])
    levels = [names]
    for depth in range(1, h + 1):
        children = np.zeros_like(names)
        messages = scrambled(names)
        np.add.at(children, low, messages[high])
        np.add.at(children, high, messages[low])
        names = scrambled(scrambled(names + np.uint64(depth)) + children)
        levels.append(names)
    ends_of = np.cumsum(sizes)
    found = []
    for start, end in zip(starts, ends_of, strict=True):
        patterns, counts = np.unique(np.concatenate([level[start:end] for level in levels]), return_counts=True)
        found.append((patterns, counts.astype(np.float64)))
    return found


def first_names(graph: Data, hard: bool) -> Names:
    """A name for the label of each node."""
    if graph.x is None:
        return np.zeros(node_count(graph), dtype=np.uint64)
    if hard:
        return scrambled(graph.x.argmax(dim=1).numpy().astype(np.uint64))
    names = np.zeros(node_count(graph), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in graph.x.double().numpy().T:
            names = scrambled(names + np.ascontiguousarray(column + 0.0).view(np.uint64))  # + 0.0: no negative zero
    return names


def scrambled(values: Names) -> Names:
    """A bijection of 64-bit numbers that spreads them evenly (the finalizer of splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def softmax(values: Rows) -> Rows:
    """Scores as probabilities in the same order; a support vector machine has no probabilities of its own."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
