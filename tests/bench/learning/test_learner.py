"""Learners: what they take, what they are given, and that the rest of the harness knows predictors only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import Augmenter, GraphAugmenter
from bench.execution.trial import TrialRunner
from bench.learning import LEARNERS
from bench.learning.augmentation import offline_data
from bench.learning.fast.engine import FastEngine
from bench.learning.gnn import GNN
from bench.learning.learner import Fitted, Learner, Problem, create_learner, predictions
from bench.learning.problem import training_set
from bench.learning.reference import ReferenceEngine
from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from models import BACKBONES

Make = Callable[..., Any]


class Counted(Learner):
    """Says the class whose training graphs have the nearest mean size; keeps the problem that it was given."""

    seen: list[Problem]

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def fit(self, problem: Problem) -> Fitted:
        self.seen.append(problem)
        data = offline_data(problem)
        places, classes, weights = data.samples()
        sizes = torch.tensor([float(graph.num_nodes) for graph in data.graphs])[places]
        onehot = torch.nn.functional.one_hot(classes, problem.num_classes).float() * weights.unsqueeze(1)
        return Fitted(Nearest(sizes @ onehot / onehot.sum(dim=0)), generated=data.figures)


class Nearest:
    def __init__(self, centers: Tensor) -> None:
        self.centers = centers
        self.given: list[Data] = []

    def probabilities(self, graphs: Sequence[Data]) -> Tensor:
        self.given = list(graphs)
        sizes = torch.tensor([[float(graph.num_nodes)] for graph in graphs])
        return torch.nn.functional.one_hot((sizes - self.centers).abs().argmin(dim=1), len(self.centers)).float()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Counted]:
    monkeypatch.setattr(LEARNERS, "_entries", dict(LEARNERS.entries()))
    monkeypatch.setattr(Counted, "seen", [], raising=False)
    LEARNERS.add("counted", Counted)
    return Counted


def test_the_registry_needs_no_torch(tools: ModuleType) -> None:
    code = "import sys; from bench.learning import LEARNERS; print(LEARNERS.names()); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tools.ROOT)


def test_the_engine_is_the_callers_choice_and_no_setting(problem: Make) -> None:
    assert LEARNERS.settings("gnn") == {}
    for engine in (FastEngine(), ReferenceEngine()):
        fitted = create_learner("gnn", engine).fit(problem(epochs=2))
        assert (fitted.engine, fitted.handed_over) == (engine.name, None)
        assert fitted.predictor.probabilities(problem().graphs).shape == (6, 2)


def test_a_handed_over_problem_says_which_engine_ran_and_why(problem: Make) -> None:
    fitted = GNN(FastEngine()).fit(problem(epochs=2, batch=4, backbone="gcn:dropout=0.5"))
    assert (fitted.engine, fitted.handed_over) == ("reference", "batch=4 with dropout")


def test_an_error_of_the_engine_is_raised(problem: Make, some_graphs: Make) -> None:
    with pytest.raises(ValueError, match="ignores edge weights"):
        GNN(FastEngine()).fit(problem(graphs=some_graphs(0, weighted=True), backbone="gat"))


def test_which_augmenters_a_learner_takes() -> None:
    taken = {name for name in AUGMENTERS.names() if Counted.refuses(AUGMENTERS.load(name)) is None}
    assert {"none", "duplicate", "g-mixup", "gdm-acc"} <= taken
    assert not taken & {"dropedge", "dropnode", "softedge", "m-mixup"}
    assert "DropEdge works during training, and Counted takes" in str(Counted.refuses(AUGMENTERS.load("dropedge")))


def test_a_network_takes_every_kind_but_weights_that_are_never_read() -> None:
    for name in AUGMENTERS.names():
        assert GNN.refuses(AUGMENTERS.load(name), BACKBONES.load("gcn")) is None
    assert "SoftEdge makes edge weights, which GAT does not read" in str(
        GNN.refuses(AUGMENTERS.load("softedge"), BACKBONES.load("gat"))
    )


def test_a_network_refuses_an_augmenter_that_would_never_be_called() -> None:
    """Trained as if it were there, it would be the baseline under another name."""

    class Drawing(Augmenter):
        when = "batch"

        def draw(self, graphs: Any, rng: Any, context: Any) -> None:
            return None

    class Never(GraphAugmenter):
        when = "batch"

    class Unsaid(GraphAugmenter):
        pass

    assert "derive it from GraphAugmenter" in str(GNN.refuses(Drawing))
    assert "derive it from StepAugmenter" in str(GNN.refuses(Never))
    assert "Unsaid says when=None" in str(GNN.refuses(Unsaid))
    assert "during training" in str(LEARNERS.load("wl").refuses(Unsaid))


def cell_of(root: Path, augmenter: str, learner: str | None = None) -> Cell:
    grid = Grid("test", product(["synthetic"], [augmenter], [3]), preset="quick", training={"epochs": 3})
    cell = Planner(root, "reference").plan(grid).cells[0]
    if learner:
        object.__setattr__(cell, "learner", LEARNERS.resolve(learner))
        object.__setattr__(cell, "backbone", None)
        object.__setattr__(cell, "readout", None)
    return cell


@pytest.mark.parametrize("augmenter", ["none", "gdm-complete:sampler=acc"])
def test_a_learner_without_a_network_runs_from_end_to_end(
    tmp_path: Path, counted: type[Counted], augmenter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("augmenters.samplers.PRETRAINING_EPOCHS", 2)
    cell = cell_of(tmp_path, augmenter, "counted:scale=2")
    record = TrialRunner(tmp_path, FastEngine(), memory=8 * 2**30).run([(cell, Trial(0, 0))])[0]
    assert record.done and record.accuracy is not None, record.reason
    assert 0 <= record.accuracy <= 1 and sum(record.predicted.values()) == pytest.approx(1)
    assert record.engine is None and record.loss is None
    assert ("count" in record.generated) == (augmenter != "none")
    assert counted.seen[0].backbone is None


def test_a_learner_of_offline_graphs_does_not_train_without_its_augmenter(
    tmp_path: Path, counted: type[Counted]
) -> None:
    record = TrialRunner(tmp_path, FastEngine()).run([(cell_of(tmp_path, "dropedge", "counted"), Trial(0, 0))])[0]
    assert record.status == "failed" and "DropEdge works during training" in (record.reason or "")


def test_a_predictor_is_given_copies_without_labels(some_graphs: Make) -> None:
    graphs = some_graphs(0, weighted=True)
    predictor = Nearest(torch.tensor([4.0, 19.0]))
    predictions(predictor, graphs, 2)
    for given, graph in zip(predictor.given, graphs, strict=True):
        assert given.y is None
        for name in ("x", "edge_index", "edge_weight"):
            assert torch.equal(given[name], graph[name])
            assert given[name].numel() == 0 or given[name].data_ptr() != graph[name].data_ptr()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (torch.ones(5, 2) / 2, r"shape \[5, 2\] for 6 graphs and 2 classes"),
        (torch.ones(6, 3) / 3, r"shape \[6, 3\]"),
        (torch.ones(6, 2), r"graph 0 are \[1.0, 1.0\]; they must be a distribution"),
        (torch.tensor([[0.5, 0.5]] * 5 + [[float("nan"), 1.0]]), "graph 5 are"),
        (torch.tensor([[1.5, -0.5]] * 6), "graph 0 are"),
    ],
)
def test_an_answer_that_is_no_distribution_is_no_result(some_graphs: Make, rows: Tensor, words: str) -> None:
    class Fixed:
        def probabilities(self, graphs: Sequence[Data]) -> Tensor:
            return rows

    with pytest.raises(ValueError, match=words):
        predictions(Fixed(), some_graphs(0), 2)


def test_soft_labels_become_weighted_samples(problem: Make, some_graphs: Make) -> None:
    mixed = some_graphs(0)[0]
    mixed.y = torch.tensor([[0.25, 0.75]])
    data = training_set(problem("gdm-rand:weight=0.5"), [mixed])
    places, classes, weights = data.samples()
    assert places.tolist() == [0, 1, 2, 3, 4, 5, 6, 6]
    assert classes.tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert weights.tolist() == [1.0] * 6 + [0.125, 0.375]
