"""Third parties that derive from a kind of augmenter train on the fast path, and as the reference trains them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch_geometric.data import Data

from augmenters import AUGMENTERS, DropEdge, DropNode, NodeSam, PerturbEdge, SoftEdge
from augmenters.base import Augmenter, Context, GraphAugmenter, StepAugmenter
from augmenters.functional import EdgeNumbers
from augmenters.joined import JoinedGraphs, Rebuilt
from augmenters.kinds import (
    EdgeFactorAugmenter,
    FeatureAugmenter,
    KeptNodesAugmenter,
    NewEdgesAugmenter,
    OneByOneAugmenter,
    PairMixAugmenter,
)
from bench.learning.fast import engine as fast
from bench.learning.fast.engine import FastEngine, fast_obstacle
from bench.learning.fast.graphs import prepared
from bench.learning.fast.graphs.parts import Part
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.training import changing, epochs, mixing, rewired
from bench.learning.problem import Fitted
from models import BACKBONES, READOUTS
from models.backbones import GAT, GCN
from models.readouts import MeanReadout

Make = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class DropByDegree(EdgeFactorAugmenter):
    """Drops edges of well-connected nodes more often."""

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        degree = np.bincount(edges.ends.ravel(), minlength=edges.nodes)
        return rng.random(edges.total) * degree[edges.ends].max(axis=0) < 2


class Fade(EdgeFactorAugmenter):
    """Some edges drop, some fade."""

    weighted = True

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        return np.clip(rng.normal(0.8, 0.5, edges.total), 0, 1)


class Neighborhood(KeptNodesAugmenter):
    """A node of each graph with its neighbors: another number of nodes each epoch."""

    def draw_kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        kept = np.zeros(graphs.nodes, dtype=bool)
        kept[graphs.starts + rng.integers(graphs.sizes)] = True
        chosen, (low, high) = kept.copy(), graphs.ends
        kept[low[chosen[high]]] = True
        kept[high[chosen[low]]] = True
        return kept


class Noise(FeatureAugmenter):
    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        return x + rng.normal(0, 0.1, x.shape)


class MaskedColumns(FeatureAugmenter):
    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        return x * (rng.random(x.shape[1]) < 0.5)


class ToTheFirst(PairMixAugmenter):
    """Every row is mixed with the first, each by a share of its own."""

    def draw_pairs(self, count: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.random(count), np.zeros(count, dtype=np.int64)


class Grown(OneByOneAugmenter):
    """An offline method whose graphs stand in the originals' place: cycles of other lengths."""

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[int]:
        return rng.integers(4, 9, len(graphs)).tolist()

    def generate_each(self, graphs: Sequence[Data], drawn: list[int]) -> Iterator[Data]:
        for graph, n in zip(graphs, drawn, strict=True):
            ring = torch.arange(n)
            edges = torch.stack([torch.cat([ring, (ring + 1) % n]), torch.cat([(ring + 1) % n, ring])])
            x = graph.x[:1].expand(n, -1) * torch.linspace(0, 1, n).view(-1, 1)
            yield Data(x=x, edge_index=edges, y=graph.y, num_nodes=n)


THIRD_PARTIES = [DropByDegree(), Fade(), Neighborhood(), Noise(), MaskedColumns(), ToTheFirst(), Grown()]


def name_of(augmenter: Augmenter) -> str:
    return type(augmenter).__name__


@pytest.fixture
def only_promised_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """No way through the engine for augmenters that promise nothing."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("not the fast path")

    monkeypatch.setattr(epochs.Epochs, "made_anew", refuse)
    monkeypatch.setattr(mixing, "TracedMixing", refuse)
    monkeypatch.setattr(prepared, "offline_set", lambda problem, rng, context: not_offline(problem))


def not_offline(problem: Any) -> Any:
    """What `offline_set` gives for methods that do not work offline; others must not ask for it."""
    from bench.learning.problem import training_set

    assert problem.augmenter.when != "offline"
    return training_set(problem, list(problem.graphs) if isinstance(problem.augmenter, GraphAugmenter) else [])


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage", "gat", "gcn:dropout=0.4", "gat:heads=2,dropout=0.3"])
@pytest.mark.parametrize("readout", ["mean", "max", "add"])
@pytest.mark.parametrize("augmenter", THIRD_PARTIES, ids=name_of)
@pytest.mark.usefixtures("double", "only_promised_paths")
def test_third_parties_train_as_in_the_reference(
    problem: Make, augmenter: Augmenter, backbone: str, readout: str, same_training: Make
) -> None:
    if augmenter.weighted and "gat" in backbone:
        pytest.skip("attention refuses edge weights")
    task = problem(augmenter, backbone=backbone, readout=readout)
    same_training(task, 1e-4 if augmenter.weighted else 1e-7)


@pytest.mark.parametrize("augmenter", [Noise(), Neighborhood()], ids=name_of)
@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage", "gat"])
@pytest.mark.usefixtures("double", "only_promised_paths")
def test_near_complete_and_one_hot_graphs_too(
    problem: Make, some_graphs: Make, augmenter: Augmenter, backbone: str, same_training: Make, monkeypatch: Any
) -> None:
    monkeypatch.setattr("bench.learning.fast.graphs.joined.SUMS_COST", 0)
    monkeypatch.setattr("bench.learning.fast.ops.factored.SUMS_COST", -(10**9))
    same_training(problem(augmenter, some_graphs(7, density=0.9), backbone=backbone))
    same_training(problem(augmenter, some_graphs(3, one_hot=40), backbone=backbone))


@pytest.mark.parametrize("augmenter", [PerturbEdge(), NodeSam(), PerturbEdge(features="carry")], ids=str)
@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage", "gcn:dropout=0.4"])
@pytest.mark.usefixtures("double", "only_promised_paths")
def test_new_edges_each_epoch(
    problem: Make, augmenter: Augmenter, backbone: str, same_training: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(rewired, "parts_of", refused_parts)
        same_training(problem(augmenter, backbone=backbone))


def refused_parts(*_: Any, **__: Any) -> None:
    raise AssertionError("built graph by graph")


class Doubled(NewEdgesAugmenter):
    """Gives every edge twice, which only the way graph by graph can add up."""

    def draw_edges(self, graphs: JoinedGraphs, rng: Generator) -> Rebuilt:
        return graphs.rebuilt(np.tile(graphs.ends, 2), None)


def test_new_edges_that_need_care_are_taken_graph_by_graph(
    problem: Make, some_graphs: Make, same_training: Make, monkeypatch: pytest.MonkeyPatch, double: None
) -> None:
    same_training(problem(Doubled()))
    monkeypatch.setattr("bench.learning.fast.graphs.joined.SUMS_COST", 0)
    monkeypatch.setattr("bench.learning.fast.graphs.rewired.SUMS_COST", 0)
    same_training(problem(PerturbEdge(), some_graphs(7, density=0.9)))


class DropsInApply(DropEdge):
    """Overrides what its base promises: it must be asked, epoch by epoch."""

    def apply(self, graphs: Sequence[Data], drawn: list[Tensor]) -> list[Data]:
        made = super().apply(graphs, drawn)
        for graph in made:
            graph.x = graph.x * 2
        return made


class KeepsTheFirst(DropNode):
    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[np.ndarray]:
        return [np.arange(max(1, graph.num_nodes // 2)) for graph in graphs]


@pytest.mark.parametrize("augmenter", [DropsInApply(), KeepsTheFirst(), DropEdge(features="recompute")], ids=name_of)
@pytest.mark.usefixtures("double")
def test_who_overrides_the_promise_is_asked_every_epoch(
    problem: Make, augmenter: Augmenter, same_training: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("this would not do what the augmenter does")

    monkeypatch.setattr(epochs, "changing_network", refuse)
    same_training(problem(augmenter))


def test_graphs_made_one_by_one_are_never_there_together(problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    generate, keep = Grown.generate_each, Part.of

    def watched(self: Grown, graphs: Sequence[Data], drawn: list[int]) -> Iterator[Data]:
        for graph in generate(self, graphs, drawn):
            events.append("made")
            yield graph

    def kept(graph: Data, whole: bool = False) -> Part:
        events.append("kept")
        return keep(graph, whole)

    monkeypatch.setattr(Grown, "generate_each", watched)
    monkeypatch.setattr(Part, "of", kept)
    fast.fit_fast(problem(Grown(), epochs=2))
    assert events[:12] == ["made", "kept"] * 6


class FromTorch(EdgeFactorAugmenter):
    """Breaks the contract: it draws from torch's global stream, as dropout does."""

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        return torch.rand(edges.total).numpy() < 0.5


class MixFromTorch(PairMixAugmenter):
    def draw_pairs(self, count: int, rng: Generator) -> tuple[float, np.ndarray]:
        return float(torch.rand(())), np.arange(count)[::-1].copy()


@pytest.mark.parametrize("augmenter", [FromTorch(), MixFromTorch()], ids=name_of)
def test_a_promise_that_is_broken_is_noticed(problem: Make, augmenter: Augmenter, weights: Make) -> None:
    from bench.learning.fast.ops.dropout import same_draws_as_torch
    from bench.learning.reference import ReferenceEngine

    if not same_draws_as_torch():
        pytest.skip("torch draws with another generator on this processor")
    task = problem(augmenter, backbone="gcn:dropout=0.4", epochs=3)
    with pytest.raises(NotFast, match="draws from torch's global stream"):
        fast.fit_fast(task)
    (result,) = FastEngine().fit([task])
    assert torch.equal(weights(result), weights(ReferenceEngine().fit([task])[0]))


def test_a_draw_that_makes_no_sense_fails_the_trial_alone(problem: Make) -> None:
    class TooFew(EdgeFactorAugmenter):
        def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
            return rng.random(3) < 0.5

    failed, fine = FastEngine().fit([problem(TooFew()), problem()])
    assert isinstance(failed, ValueError) and "TooFew drew (3,) factors" in str(failed)
    assert isinstance(fine, Fitted)


class OwnGCN(GCN):
    pass


class OwnMean(MeanReadout):
    pass


class InStep(Augmenter):
    when = "batch"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> None:
        return None


def test_obstacles_are_known_from_classes_alone() -> None:
    for name in AUGMENTERS.names():
        inside = issubclass(AUGMENTERS.load(name), StepAugmenter)
        for backbone in ("gcn", "gin", "sage"):
            for readout in ("mean", "add", "max"):
                classes = BACKBONES.load(backbone), READOUTS.load(readout), AUGMENTERS.load(name)
                assert (fast_obstacle(*classes) is not None) == inside
    for readout in ("diffpool", "mincut", "set2set", "mean+max"):
        assert "no gradients are written out" in str(fast_obstacle(GCN, READOUTS.load(readout), DropEdge))
    assert fast_obstacle(GCN, MeanReadout, DropEdge, {"norm": "batch"}) is not None
    for augmenter in THIRD_PARTIES:
        assert fast_obstacle(GCN, MeanReadout, type(augmenter)) is None
    assert fast_obstacle(GAT, MeanReadout, DropEdge) is None
    assert fast_obstacle(OwnGCN, MeanReadout, DropEdge) == "no gradients are written out for the backbone OwnGCN"
    assert fast_obstacle(GCN, OwnMean, DropEdge) == "no gradients are written out for the readout OwnMean"
    assert fast_obstacle(GAT, MeanReadout, SoftEdge) == "edge weights, which attention refuses"
    assert "InStep works inside the step" in str(fast_obstacle(GCN, MeanReadout, InStep))


def test_results_say_which_engine_ran_and_why(problem: Make, some_graphs: Make, monkeypatch: Any) -> None:
    looped = some_graphs(0)
    looped[0].edge_index = torch.cat([looped[0].edge_index, torch.zeros(2, 1, dtype=torch.long)], dim=1)
    best = problem(epochs=3, select="best-val", validation=some_graphs(8))
    quick, loops, chosen = FastEngine().fit([problem(epochs=3), problem("dropedge", looped, epochs=3), best])
    assert (quick.engine, quick.handed_over) == ("fast", None)
    assert (loops.engine, loops.handed_over) == ("reference", "a self loop among the edges")
    assert (chosen.engine, chosen.handed_over) == ("fast", None)
    fresh = type(best).fresh_model

    def own(self: Any) -> nn.Module:
        model = fresh(self)
        model.backbone.__class__ = OwnGCN
        return model

    monkeypatch.setattr(type(best), "fresh_model", own)
    (other,) = FastEngine().fit([replace(problem(epochs=3))])
    assert (other.engine, other.handed_over) == ("reference", fast_obstacle(OwnGCN, MeanReadout, DropEdge))


def test_every_kind_that_changes_graphs_has_a_network() -> None:
    assert set(changing.NETWORKS) == {EdgeFactorAugmenter, KeptNodesAugmenter, FeatureAugmenter}
