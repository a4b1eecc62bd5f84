"""What the fast engine owes its callers: independence, fallbacks, errors, third parties' methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters.base import Augmenter, Context, EmbeddingAugmenter, GraphAugmenter
from augmenters.dropedge import DropEdge
from bench.learning.augmentation import generate, make_context
from bench.learning.fast import engine as fast
from bench.learning.fast.engine import FastEngine
from bench.learning.fast.ops import dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.loop import train
from bench.learning.problem import Fitted, Problem
from bench.learning.reference import ReferenceEngine
from bench.registry import UserError
from models.fit import Diverged, own_stream, predict

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("augmenter", ["none", "dropnode", "m-mixup", "gdm-complete"])
def test_bitwise_the_same_whatever_is_trained_beside(problem: Make, augmenter: str, weights: Make) -> None:
    def tasks() -> list[Problem]:
        names = ["gcn", "gat", "gin:dropout=0.3"]
        return [problem(augmenter, seed=seed, backbone=name) for seed, name in enumerate(names)]

    together = [weights(result) for result in FastEngine().fit(tasks())]
    turned = [weights(result) for result in FastEngine().fit(tasks()[::-1])][::-1]
    alone = [weights(FastEngine().fit([task])[0]) for task in tasks()]
    for a, b, c in zip(together, turned, alone, strict=True):
        assert torch.equal(a, b)
        assert torch.equal(a, c)


def test_graphs_stay_as_they_are(problem: Make, some_graphs: Make) -> None:
    graphs = some_graphs(2, weighted=True)
    before = [graph.clone() for graph in graphs]
    FastEngine().fit([problem(name, graphs, epochs=3) for name in ("none", "dropnode", "dropedge", "softedge")])
    for graph, old in zip(graphs, before, strict=True):
        assert graph.keys() == old.keys()
        assert all(torch.equal(graph[key], old[key]) for key in ("x", "edge_index", "edge_weight", "y"))


class EveryOtherEdge(GraphAugmenter):
    """A third party's augmenter: drops every other undirected edge, starting anywhere."""

    when = "epoch"

    def draw(self, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> list[int]:
        return [int(rng.integers(2)) for _ in graphs]

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        made = []
        for graph, start in zip(graphs, drawn, strict=True):
            new = graph.clone()
            new.edge_index = graph.edge_index[:, (graph.edge_index.sum(dim=0) + start) % 2 == 0]
            made.append(new)
        return made


class Shrink(EmbeddingAugmenter):
    """A third party's mix that is not linear."""

    def draw(self, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> float:
        return float(rng.random())

    def mix(self, embeddings: torch.Tensor, targets: torch.Tensor, drawn: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return (embeddings * drawn).tanh(), targets


class DropFromTheEnd(DropEdge):
    """A subclass of a built-in method that draws in its own way."""

    def draw(self, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> list[torch.Tensor]:
        return [torch.arange(graph.num_edges) < graph.num_edges // 2 for graph in graphs]


class TorchDrawn(EveryOtherEdge):
    """A third party's augmenter that draws from torch's stream, as dropout does."""

    def draw(self, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> list[int]:
        return torch.randint(2, (len(graphs),)).tolist()


class TorchShrink(Shrink):
    def draw(self, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> float:
        return float(torch.rand(()))


THIRD_PARTIES = [EveryOtherEdge(), Shrink(), DropFromTheEnd(), DropEdge(features="recompute")]
THIRD_PARTIES += [TorchDrawn(), TorchShrink()]


@pytest.mark.parametrize("backbone", ["gcn", "gcn:dropout=0.4"])
@pytest.mark.parametrize("augmenter", THIRD_PARTIES, ids=lambda augmenter: type(augmenter).__name__)
@pytest.mark.usefixtures("double")
def test_methods_of_third_parties(problem: Make, augmenter: Augmenter, backbone: str, same_training: Make) -> None:
    same_training(problem(augmenter, backbone=backbone))


@pytest.mark.parametrize("p", [0.05, 0.5, 0.99])
@pytest.mark.parametrize("augmenter", ["none", "dropnode"])
@pytest.mark.parametrize("same_generator", [True, False])
def test_masks_are_those_of_torch(
    problem: Make, augmenter: str, p: float, same_generator: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether torch's generator is the one that the engine knows, or, as on other processors, not."""
    if same_generator and not dropout.same_draws_as_torch():
        pytest.skip("torch draws with another generator on this processor")
    monkeypatch.setattr(dropout, "same_draws_as_torch", lambda: same_generator)
    seen: list[torch.Tensor] = []
    draw = dropout.Dropout.draw

    def watched(self: dropout.Dropout, factors: torch.Tensor) -> None:
        draw(self, factors)
        seen.append(factors.clone() if self.nodes is None else factors[self.nodes])

    monkeypatch.setattr(dropout.Dropout, "draw", watched)
    task = problem(augmenter, backbone=f"gcn:dropout={p},layers=2", epochs=3)
    fast.fit_fast(task)
    assert len(seen) == 6
    with own_stream(task.augment_seed):
        for factors in seen:
            assert torch.equal(factors, torch.nn.functional.dropout(torch.ones(factors.shape), p))


@pytest.mark.parametrize("augmenter", ["none", "dropedge", "m-mixup"])
def test_divergence_names_the_epoch(problem: Make, augmenter: str) -> None:
    slow = ReferenceEngine().fit([problem(augmenter, lr=1e9)])[0]
    quick, beside = FastEngine().fit([problem(augmenter, lr=1e9), problem()])
    assert isinstance(slow, Diverged)
    assert isinstance(quick, Diverged)
    assert str(quick) == str(slow)
    assert isinstance(beside, Fitted)


@pytest.mark.parametrize("epoch", [0, 49, 50, 77, 119])
def test_the_first_bad_loss_counts(epoch: int) -> None:
    class Failing:
        """A network whose loss is not a number from some epoch on."""

        steps = 0

        def step(self, loss: torch.Tensor, mix: None) -> None:
            loss.fill_(float("nan") if self.steps >= epoch else 1.0)
            self.steps += 1

    network: Any = Failing()
    parameters = Parameters(torch.nn.Linear(2, 2), lr=0.01)
    with pytest.raises(Diverged, match=rf"nan at epoch {epoch + 1};"):
        train(parameters, ([(network, None)] for _ in range(120)), 120)


def assert_falls_back(task: Problem, weights: Make) -> None:
    with pytest.raises(fast.NotFast):
        fast.fit_fast(task)
    torch.manual_seed(0)
    slow = weights(ReferenceEngine().fit([task])[0])
    torch.manual_seed(0)
    assert torch.equal(weights(FastEngine().fit([task])[0]), slow)


def test_mini_batches_with_dropout_fall_back_to_the_reference(problem: Make, weights: Make) -> None:
    assert_falls_back(problem(epochs=5, batch=4, backbone="gcn:dropout=0.5"), weights)


def test_the_best_epoch_is_kept_as_it_was(problem: Make, some_graphs: Make, weights: Make) -> None:
    """Units are moved around and left out while training goes on; of equally good epochs the first counts."""
    validation = some_graphs(8)
    chosen = fast.fit_fast(problem(epochs=60, lr=0.03, select="best-val", validation=validation))
    models = [fast.fit_fast(problem(epochs=n, lr=0.03)).predictor.model for n in range(1, 61)]
    labels = torch.cat([graph.y for graph in validation])
    right = [int((predict(model, validation).argmax(dim=1) == labels).sum()) for model in models]
    best = 1 + right.index(max(right))
    assert 1 < best < 60, "another seed, or this says nothing"
    torch.testing.assert_close(weights(chosen), weights(fast.fit_fast(problem(epochs=best, lr=0.03))))


@pytest.mark.parametrize("augmenter", ["none", "dropedge"])
def test_self_loops_fall_back_to_the_reference(problem: Make, some_graphs: Make, augmenter: str, weights: Make) -> None:
    graphs = some_graphs(0)
    graphs[0].edge_index = torch.cat([graphs[0].edge_index, torch.zeros(2, 1, dtype=torch.long)], dim=1)
    assert_falls_back(problem(augmenter, graphs), weights)


def test_attention_still_refuses_edge_weights(problem: Make, some_graphs: Make) -> None:
    weighted = problem(graphs=some_graphs(0, weighted=True), backbone="gat")
    for result in FastEngine().fit([weighted, problem("softedge", backbone="gat")]):
        assert isinstance(result, UserError)
        assert "ignores edge weights" in str(result)


@pytest.mark.parametrize("engine", [FastEngine, ReferenceEngine])
@pytest.mark.parametrize("when", ["offline", "epoch"])
def test_whatever_the_caller_has_graphs_are_made_with_one_thread(
    problem: Make, engine: type, when: str, weights: Make
) -> None:
    """Sums over several threads have other last digits, from which other edges may follow."""
    found = []

    class Counting(EveryOtherEdge):
        def draw(self, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> Any:
            found.append(torch.get_num_threads())
            return super().draw(graphs, rng, context)

    Counting.when = when  # type: ignore[assignment]
    torch.set_num_threads(2)
    weights(engine().fit([problem(Counting(), epochs=2)])[0])  # which raises if it failed
    task = problem(Counting())
    generate(task, task.augmenter, np.random.default_rng(0), make_context(task))
    assert len(found) >= 2 and set(found) == {1}
    assert torch.get_num_threads() == 2, "and the caller has them back"
