"""Step augmenters: what they may see of the model, and what a step of theirs does to it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from augmenters import StepAugmenter
from bench.learning.fast.engine import FastEngine
from bench.learning.reference import ReferenceEngine, fit_problem
from bench.learning.steps import AugmentedStep, ModelView
from models.backbones import Backbone
from models.classifier import GraphClassifier, build_classifier
from models.readouts import AddReadout, MeanReadout

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


METHODS = load("step_methods")


class Passing(Backbone):
    """Node embeddings are the features."""

    def __init__(self, in_channels: int) -> None:
        nn.Module.__init__(self)
        self.out_channels = in_channels

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return x


WEIGHT = np.array([[0.5, -0.25], [-1.0, 0.75]])


def linear_model(readout: type = AddReadout) -> GraphClassifier:
    """Logits are WEIGHT times the pooled features: every gradient can be written down."""
    model = GraphClassifier(Passing(2), readout(2), 2).double()
    model.head = nn.Linear(2, 2, bias=False).double()
    with torch.no_grad():
        model.head.weight.copy_(torch.from_numpy(WEIGHT))
    return model


def one_node(x: Sequence[float], y: int) -> Data:
    features = torch.tensor([list(x)], dtype=torch.float64)
    return Data(x=features, edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([y]), num_nodes=1)


def residual(x: np.ndarray, y: int) -> np.ndarray:
    """p - y of the linear model."""
    p = np.exp(WEIGHT @ x)
    return p / p.sum() - np.eye(2)[y]


def view_of(model: GraphClassifier) -> ModelView:
    return ModelView(model, 2, "cpu", lambda graph: graph)


def test_ascent_by_hand_on_a_linear_model() -> None:
    """Three sign steps, the gradients of each with a third, at the features where each step was."""
    model, graph, size = linear_model(), one_node([0.3, -0.8], 1), 0.1
    start = np.array([0.04, -0.07])
    x, expected, losses = np.array([0.3, -0.8]) + start, np.zeros((2, 2)), []
    for _ in range(3):
        logits = WEIGHT @ x
        losses.append(np.log(np.exp(logits).sum()) - logits[1])
        expected += np.outer(residual(x, 1), x) / 3
        x = x + size * np.sign(WEIGHT.T @ residual(x, 1))
    step = AugmentedStep(METHODS.Ascent(size), [graph], [torch.tensor(start).view(1, 2)], 2, "cpu", lambda g: g)
    assert step.backward(model) == pytest.approx(np.mean(losses))
    np.testing.assert_allclose(model.head.weight.grad.numpy(), expected, rtol=1e-6)
    assert torch.equal(graph.x, torch.tensor([[0.3, -0.8]], dtype=torch.float64))


@pytest.mark.parametrize(("readout", "divisor"), [(AddReadout, 1), (MeanReadout, 3)])
def test_saliency_is_the_length_of_the_gradient_at_each_node(readout: type, divisor: int) -> None:
    model = linear_model(readout)
    x = torch.tensor([[0.1, 0.2], [-0.3, 0.4], [0.5, 0.6]], dtype=torch.float64)
    graph = Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0]), num_nodes=3)
    pooled = x.sum(dim=0).numpy() / divisor
    expected = np.linalg.norm(WEIGHT.T @ residual(pooled, 0)) / divisor
    first, second = view_of(model).saliency([graph, one_node([1.0, 1.0], 1)])
    np.testing.assert_allclose(first.numpy(), [expected] * 3)
    np.testing.assert_allclose(second.numpy(), [np.linalg.norm(WEIGHT.T @ residual(np.ones(2), 1))])


def test_looking_is_free_of_traces() -> None:
    """No gradient, no draw of dropout, no mode is left behind; and what is seen is seen per graph."""
    model = build_classifier("gcn:dropout=0.5,layers=2,width=4", "mean", 2, 2, seed=0).double().train()
    graphs = [one_node([1.0, 2.0], 0), one_node([-1.0, 0.5], 1)]
    view, before = view_of(model), torch.get_rng_state()
    assert [rows.shape for rows in view.embeddings(graphs)] == [(1, 4), (1, 4)]
    assert [rows.shape for rows in view.feature_gradients(graphs)] == [(1, 2), (1, 2)]
    assert view.losses(graphs).shape == (2,)
    view.saliency(graphs)
    assert torch.equal(before, torch.get_rng_state())
    assert model.training and all(parameter.grad is None for parameter in model.parameters())
    assert not any(graph.x.requires_grad for graph in graphs)
    assert not view.parts


def test_feature_gradients_and_losses_by_hand() -> None:
    view, x = view_of(linear_model()), np.array([0.3, -0.8])
    (gradient,) = view.feature_gradients([one_node(x.tolist(), 0)])
    np.testing.assert_allclose(gradient.numpy()[0], WEIGHT.T @ residual(x, 0))
    logits = WEIGHT @ x
    assert float(view.losses([one_node(x.tolist(), 0)])) == pytest.approx(np.log(np.exp(logits).sum()) - logits[0])
    np.testing.assert_allclose(view.learn([one_node(x.tolist(), 0)], share=0.25)[0].numpy(), gradient.numpy())


@pytest.mark.parametrize("method", [METHODS.Ascent(), METHODS.Transplant()], ids=["ascent", "transplant"])
@pytest.mark.parametrize("backbone", ["gcn", "gin:dropout=0.3", "gat"])
def test_both_kinds_train_through_an_engine(problem: Make, weights: Make, method: Any, backbone: str) -> None:
    """The same seed gives the same weights; the fast engine hands over and says so; the graphs stay as they are."""
    task = problem(method, backbone=backbone, epochs=6)
    kept = [graph.clone() for graph in task.graphs]
    slow, quick = ReferenceEngine().fit([task])[0], FastEngine().fit([task])[0]
    assert torch.equal(weights(slow), weights(quick))
    assert not torch.equal(
        weights(slow), weights(ReferenceEngine().fit([problem("none", backbone=backbone, epochs=6)])[0])
    )
    assert (quick.engine, slow.handed_over) == ("reference", None)
    assert quick.handed_over == f"{type(method).__name__} acts inside the step, with gradients"
    assert len(slow.curve) and slow.curve[-1][1] == slow.loss
    for graph, before in zip(task.graphs, kept, strict=True):
        assert torch.equal(graph.x, before.x) and torch.equal(graph.edge_index, before.edge_index)


def test_the_saliency_of_the_current_model_decides(problem: Make) -> None:
    """What is transplanted follows the model as it learns: the view of a later step sees other saliencies."""
    seen: list[Tensor] = []

    class Watching(METHODS.Transplant):  # type: ignore[misc, name-defined]
        def step(self, view: Any, graphs: Sequence[Data], drawn: Any) -> None:
            seen.append(torch.cat(view.saliency(graphs)))
            super().step(view, graphs, drawn)

    fit_problem(problem(Watching(), epochs=3))
    assert len(seen) == 3
    assert not torch.equal(seen[0], seen[1]) and not torch.equal(seen[1], seen[2])


def test_features_are_made_anew_for_new_graphs_where_the_augmenter_asks(problem: Make) -> None:
    made: list[int] = []

    def counted(graph: Data) -> Data:
        made.append(int(graph.num_nodes or 0))
        return graph

    class Anew(METHODS.Transplant):  # type: ignore[misc, name-defined]
        features = "recompute"

    task = problem(Anew(), epochs=1)
    fit_problem(type(task)(**{**vars(task), "featurize": counted}))
    assert len(made) == 2 * len(task.graphs), "those it looked at, and those it made"


def test_a_step_that_learns_nothing_is_an_error(problem: Make) -> None:
    class Idle(StepAugmenter):
        def draw(self, graphs: Any, rng: Any, context: Any) -> None:
            return None

        def step(self, view: Any, graphs: Any, drawn: Any) -> None:
            view.saliency(graphs)

    result = ReferenceEngine().fit([problem(Idle())])[0]
    assert isinstance(result, ValueError) and "Idle never called view.learn in a step; call it" in str(result)


def test_each_is_short() -> None:
    text = Path(__file__).with_name("step_methods.py").read_text(encoding="utf-8")
    for part in text.split("@dataclass(frozen=True)\n")[1:]:
        assert len(part.splitlines()) < 60
