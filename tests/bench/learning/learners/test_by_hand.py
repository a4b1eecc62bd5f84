"""Whole trials against a script of its own: networkx counts, a dictionary names subtrees, scikit-learn learns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bench.datasets import load_dataset
from bench.execution.trial import TrialRunner, engines
from bench.plan.cells import Trial
from bench.plan.planner import Planner
from bench.protocol.budgets import labeled_graphs
from bench.protocol.seeds import TrialSeeds
from bench.protocol.splits import load_splits
from bench.protocol.training import preset
from tables.specs import Coordinate

SHAPES, K = "synthetic:graphs=160", 5  # four families of random graphs, of like sizes
TRIALS = [Trial(fold, 0) for fold in range(4)]
Rule = Callable[[list[nx.Graph], list[int], list[nx.Graph]], list[int]]  # training graphs, labels, test graphs


def logistic(rows: Callable[[nx.Graph], list[float]]) -> Rule:
    def classify(known: list[nx.Graph], labels: list[int], asked: list[nx.Graph]) -> list[int]:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))
        return list(model.fit([rows(g) for g in known], labels).predict([rows(g) for g in asked]))

    return classify


def by_degrees(known: list[nx.Graph], labels: list[int], asked: list[nx.Graph]) -> list[int]:
    top = min(max(d for g in known for _, d in g.degree), 64)

    def rows(graph: nx.Graph) -> list[float]:
        counts = Counter(min(d, top) for _, d in graph.degree)
        return [counts[d] for d in range(top + 1)]

    return logistic(rows)(known, labels, asked)


def by_forest(known: list[nx.Graph], labels: list[int], asked: list[nx.Graph]) -> list[int]:
    """Fewer numbers than the learner has, and another seed: it agrees on average."""

    def rows(g: nx.Graph) -> list[float]:
        degrees = [d for _, d in g.degree]
        counts = np.bincount(degrees, minlength=80)[:80] / len(degrees)
        triangles = sum(nx.triangles(g).values()) / 3
        found = [len(g), g.number_of_edges(), nx.density(g), np.std(degrees), max(degrees), triangles]
        return [*found, nx.average_clustering(g), nx.transitivity(g), *counts]

    model = RandomForestClassifier(200, random_state=123).fit([rows(g) for g in known], labels)
    return list(model.predict([rows(g) for g in asked]))


def by_subtrees(known: list[nx.Graph], labels: list[int], asked: list[nx.Graph]) -> list[int]:
    def counts(graph: nx.Graph) -> Counter[Hashable]:
        names: dict[Hashable, Hashable] = dict.fromkeys(graph, 0)
        found: Counter[Hashable] = Counter((0, name) for name in names.values())
        for depth in range(1, 6):
            names = {v: hash((names[v], tuple(sorted(names[w] for w in graph[v])))) for v in graph}  # type: ignore[type-var]
            found.update((depth, name) for name in names.values())
        return found

    def kernel(left: list[Counter[Hashable]], right: list[Counter[Hashable]]) -> np.ndarray:
        def product(a: Counter[Hashable], b: Counter[Hashable]) -> int:
            return sum(times * b[name] for name, times in a.items())

        return np.array([[product(a, b) / np.sqrt(product(a, a) * product(b, b)) for b in right] for a in left])

    train, test = [counts(g) for g in known], [counts(g) for g in asked]
    model = SVC(C=1.0, kernel="precomputed", decision_function_shape="ovr").fit(kernel(train, train), labels)
    return list(model.decision_function(kernel(test, train)).argmax(axis=1))


@pytest.mark.parametrize(
    ("learner", "rule", "dataset", "apart"),
    [
        ("size", logistic(lambda g: [np.log(len(g))]), "digits", 0.0),
        ("histogram", by_degrees, SHAPES, 0.0),
        ("wl", by_subtrees, SHAPES, 0.0),
        ("statistics", by_forest, SHAPES, 0.08),
    ],
)
def test_trials_come_out_as_by_hand(learner: str, rule: Rule, dataset: str, apart: float, tmp_path: Path) -> None:
    cell = Planner(tmp_path).cell(Coordinate(dataset, K, "none", "", "", learner), preset("standard"))
    data = load_dataset(cell.dataset, tmp_path)
    graphs = [nx.Graph(graph.edge_index.t().tolist()) for graph in data.graphs]
    for graph, whole in zip(graphs, data.graphs, strict=True):
        graph.add_nodes_from(range(int(whole.num_nodes or 0)))
    splits = load_splits(cell.dataset, cell.splits, data.labels, tmp_path)
    mine = []
    for trial in TRIALS:
        seeds = TrialSeeds(cell.dataset, cell.splits, trial.fold, trial.repeat)
        chosen = labeled_graphs(data.labels, splits.development(trial.fold).train, K, seeds)
        asked = splits.test(trial.fold)
        said = rule([graphs[i] for i in chosen], [int(data.labels[i]) for i in chosen], [graphs[i] for i in asked])
        mine.append(float(np.mean(np.array(said) == data.labels[asked])))
    records = TrialRunner(tmp_path, engines()["fast"]()).run([(cell, trial) for trial in TRIALS])
    theirs = [record.accuracy for record in records]
    assert np.mean(mine) > 1.3 / data.num_classes, "better than guessing, or nothing is compared"
    assert np.mean(theirs) == pytest.approx(np.mean(mine), abs=apart + 1e-9)
    if not apart:
        assert theirs == pytest.approx(mine)
