"""The verdict on a test part: the classes that PyG's batches give, from matrices that are made once per fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from bench.execution.trial import TrialRunner, engines, evaluate
from bench.learning.fast import evaluation
from bench.learning.fast.engine import FastEngine
from bench.learning.fast.evaluation import FastNetwork, head_classes
from bench.learning.held_out import FormPredictor, HeldOut, HeldOutParts, Unlabeled, predicted_classes
from bench.learning.learner import predictions
from bench.learning.problem import Fitted
from bench.plan.cells import Trial
from bench.plan.planner import Planner
from bench.protocol.training import preset
from models.fit import predict
from tables.specs import Coordinate

pytestmark = pytest.mark.usefixtures("one_thread")


def part(graphs: Sequence[Data]) -> HeldOut:
    return HeldOut(lambda place: graphs[place], np.array([int(graph.y) for graph in graphs]))


def trained(task: Any) -> Any:
    fitted = FastEngine().fit([task])[0]
    assert isinstance(fitted, Fitted) and fitted.handed_over is None, fitted
    return fitted.predictor


@pytest.mark.parametrize("readout", ["mean", "add", "max"])
@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage", "gcn:layers=1", "gin:layers=2,width=16"])
def test_embeddings_are_those_of_the_network(
    problem: Callable[..., Any], some_graphs: Callable[..., Any], backbone: str, readout: str
) -> None:
    predictor = trained(problem(backbone=backbone, readout=readout, epochs=5))
    for more in ({}, {"weighted": True}, {"density": 0.97}):
        graphs = part(some_graphs(1, **more))
        model = predictor.model
        form = evaluation.MergedGraphs.of(
            graphs.unlabeled.graphs(), backbone[:4].rstrip(":"), len(model.backbone.convs)
        )
        with torch.no_grad():
            rows = evaluation.embeddings(form, model, backbone[:4].rstrip(":"))
            found = model.head(form.pooling(readout, model.backbone.out_channels).forward(rows)).softmax(dim=1)
        torch.testing.assert_close(found, predict(model, graphs), rtol=1e-4, atol=1e-5)
        assert (predictor.classes(graphs.unlabeled) == predictions(predictor, graphs, 2).argmax(dim=1).numpy()).all()
        assert form.nbytes > 0


def test_a_form_serves_every_network_of_its_kind_and_no_label_is_seen(
    problem: Callable[..., Any], some_graphs: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs, seen = part(some_graphs(1)), []
    make = evaluation.MergedGraphs.of

    def watched(given: Sequence[Data], *rest: Any) -> Any:
        seen.append(given)
        return make(given, *rest)

    monkeypatch.setattr(evaluation.MergedGraphs, "of", watched)
    for seed in range(3):
        predicted_classes(trained(problem(seed=seed, epochs=2)), graphs, 2)
    assert len(seen) == 1 and all("y" not in graph for graph in seen[0])
    predicted_classes(trained(problem(backbone="gin", epochs=2)), graphs, 2)
    assert len(seen) == 2


def test_what_rounding_could_turn_is_left_to_pyg(problem: Callable[..., Any], some_graphs: Callable[..., Any]) -> None:
    predictor, graphs = trained(problem(epochs=5)), part(some_graphs(1))
    with torch.no_grad():  # one class of two, but for a difference below any rounding
        last = predictor.model.head[2]
        last.weight[1] = last.weight[0]
        last.bias[1] = last.bias[0]
    assert predictor.classes(graphs.unlabeled) is None, "none is certain, so the usual way is taken"
    assert set(predicted_classes(predictor, graphs, 2)) == {0}


def test_margins_and_exact_ties() -> None:
    head = nn.Sequential(nn.Identity(), nn.Linear(2, 2), nn.ReLU())
    with torch.no_grad():
        head[1].weight.copy_(torch.eye(2))  # type: ignore[union-attr, operator]
        head[1].bias.zero_()  # type: ignore[union-attr, operator]
    rows = torch.tensor([[1.0, 2.0], [1.0, 1.00001], [-1.0, -2.0], [-1.0, 3.0], [-1.0, -1e-9], [0.0, 0.0]])
    found, certain = head_classes(head, rows)
    assert found.tolist() == [1, 1, 0, 1, 0, 0]
    assert certain.tolist() == [True, False, True, True, False, False]
    assert head_classes(head[:2], rows[[0, 2]])[0].tolist() == [1, 0]
    assert not head_classes(nn.Sequential(*head[:2], nn.Softplus()), rows)[1].any()
    assert not head_classes(head, torch.full((1, 2), torch.nan))[1].any()


@pytest.mark.parametrize("task", [{"backbone": "gat"}, {"backbone": "gcn:norm=batch"}, {"readout": "diffpool"}])
def test_networks_without_a_kernel_go_the_usual_way(
    problem: Callable[..., Any], some_graphs: Callable[..., Any], task: dict[str, Any]
) -> None:
    fitted = FastEngine().fit([problem(epochs=2, **task)])[0]
    assert isinstance(fitted, Fitted)
    graphs = part(some_graphs(1))
    assert FastNetwork(fitted.predictor.model).classes(graphs.unlabeled) is None  # type: ignore[attr-defined]
    assert evaluate(fitted.predictor, graphs, 2) == evaluate(fitted.predictor, some_graphs(1), 2)


class Block:
    nbytes = 10


class Ones(FormPredictor):
    def classes(self, graphs: Unlabeled) -> np.ndarray:
        return graphs.form(self, "table", lambda every: np.ones(len(every), dtype=int))

    def probabilities(self, graphs: Sequence[Data]) -> np.ndarray:
        raise AssertionError("it tells from the form")


class Zeros(Ones):
    def classes(self, graphs: Unlabeled) -> np.ndarray:
        return graphs.form(self, "table", lambda every: np.zeros(len(every), dtype=int))


def test_two_kinds_of_predictors_never_share_a_form(some_graphs: Callable[..., Any]) -> None:
    graphs = part(some_graphs(1))
    for _ in range(2):
        assert set(predicted_classes(Ones(), graphs, 2)) == {1}
        assert set(predicted_classes(Zeros(), graphs, 2)) == {0}
    assert len(graphs.unlabeled.forms) == 2, "the second look uses the form of the first"


def test_the_cache_is_bounded(some_graphs: Callable[..., Any]) -> None:
    parts = HeldOutParts(most_bytes=25, most_parts=4)
    for place in range(6):
        parts.fetch(place, lambda: part(some_graphs(1))).unlabeled.form(Ones(), "block", lambda graphs: Block())
    parts.fetch(5, lambda: part([]))
    assert list(parts.parts) == [4, 5] and parts.nbytes == 20
    few = HeldOutParts(most_parts=2)
    for place in (0, 1, 0, 2):
        few.fetch(place, lambda: part(some_graphs(1)))
    assert list(few.parts) == [0, 2]


@pytest.mark.parametrize("dataset", ["MUTAG", "IMDB-BINARY"])
def test_real_test_parts_get_the_same_classes(data_root: Path, dataset: str) -> None:
    runner = TrialRunner(data_root, engines()["fast"]())
    planner, training = Planner(data_root, "fast"), preset("standard").with_settings({"epochs": 30})
    for backbone, features in (("gcn", "constant"), ("gin", "degree-onehot")):
        cell = planner.cell(Coordinate(dataset, 3, "none", backbone), training, features=features)
        for fold in range(3):
            task, test = runner.problem(cell, Trial(fold, 0))
            predictor = trained(task)
            quick = predictor.classes(test.unlabeled)
            assert quick is not None
            assert (quick == predictions(predictor, test, task.num_classes).argmax(dim=1).numpy()).all()
