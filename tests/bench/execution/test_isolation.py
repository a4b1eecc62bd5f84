"""What a plug-in breaks is its own trial: nothing it is given, keeps or shares reaches another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import GraphAugmenter
from augmenters.gdm import EPOCHS, GDM
from bench.datasets import load_dataset
from bench.datasets.loading import forget_loaded
from bench.execution.trial import TrialRunner, engines
from bench.learning import LEARNERS
from bench.learning.isolation import contents_of, own_copy
from bench.learning.learner import Fitted, Learner, Problem
from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.results.records import TrialRecord
from bench.tuning.objective import FoldDevelopment, Objective

GDM_KEY = f"autoencoder:encoder=gsae,epochs={EPOCHS},structure=diag,width=64"


class Hostile(GraphAugmenter):
    """The graphs as they are, with a little harm done on the way."""

    when = "offline"

    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        return None

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        return list(graphs)


class Zeroing(Hostile):
    """The documented slip: a write in place after a shallow copy, or none at all."""

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        for graph in graphs:
            graph.x *= 0
        return list(graphs)


class Rewiring(Hostile):
    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        for graph in graphs:
            graph.edge_index[1] = graph.edge_index[0].roll(1)
        return list(graphs)


class Relabeling(Hostile):
    when = "epoch"

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        for graph in graphs:
            graph.y.fill_(0)
        return list(graphs)


class Keeping(Hostile):
    """Writes into what it was given in earlier trials."""

    kept: ClassVar[list[Data]] = []

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        for graph in self.kept:
            graph.x.fill_(7.0)
            graph.edge_index.fill_(0)
        self.kept.extend(graphs)
        return list(graphs)


class AsksOthers(Hostile):
    """Pre-trains on graphs that are not the trial's, as many as the trial has."""

    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        others = [own_copy(graph) for graph in graphs]
        for graph in others:
            graph.x.zero_()
            graph.y = torch.zeros_like(graph.y)
        context.classify(others, 3)


class AsksTooMany(Hostile):
    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        context.classify([*graphs, *graphs], 3)


class SpoilsTheAnswer(Hostile):
    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        context.classify(graphs, 3).fill_(0.5)


class SpoilsTheQuestion(Hostile):
    """Writes into the graphs that it has asked about."""

    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        context.classify(graphs, 3)
        for graph in graphs:
            graph.x.zero_()


class TakesTheKey(Hostile):
    """Puts its own value under the key of GDM's auto-encoder."""

    def draw(self, graphs: Sequence[Data], rng: Any, context: Any) -> None:
        def make(stream: Any) -> list[Tensor]:
            return [torch.zeros(int(graph.num_nodes or 0), 64) for graph in graphs]

        kept = context.share(GDM_KEY, make)
        assert all(not rows.any() for rows in kept), "its own value, whatever others have kept"


class PretendsToBeGDM(TakesTheKey):
    pass


PretendsToBeGDM.__module__, PretendsToBeGDM.__qualname__ = GDM.__module__, GDM.__qualname__
PretendsToBeGDM.__name__ = GDM.__name__


class Derived(GDM):
    """A subclass of GDM that spoils what its family shares."""

    def embeddings(self, graphs: Sequence[Data], context: Any) -> list[Tensor]:
        found = super().embeddings(graphs, context)
        for rows in found:
            rows.zero_()
        return found


class SpoilsTests(Learner):
    """Trains nothing; its predictor writes into what it is asked about."""

    def fit(self, problem: Problem) -> Fitted:
        for graph in (*problem.graphs, *problem.validation):
            graph.x.zero_()
        return Fitted(SpoilingPredictor(problem.num_classes))


class SpoilingPredictor:
    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes

    def probabilities(self, graphs: Sequence[Data]) -> Tensor:
        for graph in graphs:
            assert graph.get("y") is None
            graph.x.zero_()
            graph.edge_index.zero_()
        return torch.full((len(graphs), self.num_classes), 1 / self.num_classes)


IN_PLACE = [Zeroing, Rewiring, Relabeling, Keeping]
SHARING = [AsksOthers, SpoilsTheAnswer, SpoilsTheQuestion, TakesTheKey, PretendsToBeGDM, Derived]


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(AUGMENTERS, "_entries", dict(AUGMENTERS.entries()))
    monkeypatch.setattr(LEARNERS, "_entries", dict(LEARNERS.entries()))
    for number, cls in enumerate([*IN_PLACE, *SHARING, AsksTooMany]):
        AUGMENTERS.add(f"hostile{number}", cls)
    LEARNERS.add("spoils-tests", SpoilsTests)
    monkeypatch.setattr("augmenters.samplers.PRETRAINING_EPOCHS", 3)
    Keeping.kept.clear()
    yield
    # Where isolation fails, what a worker keeps of its dataset is spoiled: no later test should see that.
    forget_loaded()


def name_of(cls: type) -> str:
    return next(name for name, entry in AUGMENTERS.entries().items() if entry.target is cls)


def cell_of(root: Path, augmenter: str, select: str = "last") -> Cell:
    grid = Grid("test", product(["digits"], [augmenter], [2]), training={"epochs": 4, "select": select})
    return Planner(root, "fast").plan(grid).cells[0]


def digits_of(record: TrialRecord) -> dict[str, Any]:
    assert record.status == "done", record.reason
    return {
        name: getattr(record, name)
        for name in ("accuracy", "balanced_accuracy", "macro_f1", "loss", "curve", "generated")
    }


def run(root: Path, cells: Sequence[Cell], trials: Sequence[Trial] = (Trial(0, 0),)) -> list[TrialRecord]:
    """One worker: all cells of a trial, then those of the next."""
    runner = TrialRunner(root, engines()["fast"]())
    return runner.run([(cell, trial) for trial in trials for cell in cells])


@pytest.mark.parametrize("cls", IN_PLACE)
@pytest.mark.parametrize("select", ["last", "best-val"])
def test_a_write_in_place_spoils_only_the_trial_that_does_it(tmp_path: Path, cls: type, select: str) -> None:
    graphs = load_dataset("digits", tmp_path).graphs
    before, trials = contents_of(graphs), [Trial(0, 0), Trial(1, 0), Trial(0, 1)]
    none, hostile = cell_of(tmp_path, "none", select), cell_of(tmp_path, name_of(cls), select)
    alone = [digits_of(record) for record in run(tmp_path, [none], trials)]
    beside = run(tmp_path, [hostile, none], trials)[1::2]
    assert [digits_of(record) for record in beside] == alone
    assert contents_of(graphs) == before


def test_a_learner_cannot_reach_the_test_graphs(tmp_path: Path) -> None:
    graphs = load_dataset("digits", tmp_path).graphs
    before, none, spoiling = contents_of(graphs), cell_of(tmp_path, "none"), cell_of(tmp_path, "none", "best-val")
    object.__setattr__(spoiling, "learner", LEARNERS.resolve("spoils-tests"))
    alone = digits_of(run(tmp_path, [none])[0])
    first, second = run(tmp_path, [spoiling, none])
    assert first.status == "done", first.reason
    assert digits_of(second) == alone
    assert contents_of(graphs) == before


@pytest.mark.parametrize("cls", IN_PLACE)
def test_a_setting_that_is_tried_spoils_no_other_setting(tmp_path: Path, cls: type) -> None:
    none, hostile = cell_of(tmp_path, "none"), cell_of(tmp_path, name_of(cls))
    objective = Objective(FoldDevelopment.load("digits", none.splits, 0, tmp_path), engines()["fast"](), "full")
    alone = objective.accuracy(none, Trial(0, 0))
    for _ in range(2):
        objective.accuracy(hostile, Trial(0, 0))
        assert objective.accuracy(none, Trial(0, 0)) == alone


@pytest.mark.parametrize("cls", SHARING, ids=lambda cls: next(k for k, v in globals().items() if v is cls))
def test_no_method_writes_what_another_one_reads(tmp_path: Path, cls: type) -> None:
    honest = [cell_of(tmp_path, "gdm-acc"), cell_of(tmp_path, "gdm-unc")]
    hostile = cell_of(tmp_path, name_of(cls))
    alone = [digits_of(record) for record in run(tmp_path, honest)]
    first, *after = run(tmp_path, [hostile, *honest])
    assert first.status == "done", first.reason
    assert [digits_of(record) for record in after] == alone
    before, *_ = run(tmp_path, [honest[0], hostile, honest[1]])
    assert digits_of(before) == alone[0]


def test_a_question_about_other_graphs_is_told(tmp_path: Path) -> None:
    record = run(tmp_path, [cell_of(tmp_path, name_of(AsksTooMany))])[0]
    assert record.status == "failed"
    assert "classify was asked about 40 graphs; this trial has 20 labeled ones" in str(record.reason)


def test_methods_of_one_class_still_share_what_is_costly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            made.append(name)
            return function(*args, **more)

        return counted

    from augmenters import gdm
    from bench.learning.fast import engine

    counted = counting("pre-training", engine.fast_pretrain)
    monkeypatch.setattr(engine, "fast_pretrain", counted)
    monkeypatch.setattr(gdm, "fit_autoencoder", counting("auto-encoder", gdm.fit_autoencoder))
    names = ["gdm-acc", "gdm-unc", "gdm-rand", "gdm-cal", "gdm-complete"]
    for record in run(tmp_path, [cell_of(tmp_path, name) for name in names], [Trial(0, 0), Trial(1, 0)]):
        assert record.status == "done", record.reason
    assert sorted(made) == ["auto-encoder"] * 2 + ["pre-training"] * 2


def test_a_copy_shares_no_memory_and_loses_nothing() -> None:
    whole = torch.arange(20.0).view(10, 2)
    graph = Data(x=whole[2:5], edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([1]), names=["a", ["b"]])
    copied = own_copy(graph)
    assert sorted(copied.keys()) == sorted(graph.keys()) and contents_of([copied]) == contents_of([graph])
    assert copied.x.untyped_storage().nbytes() == 3 * 2 * 4, "the view's part alone, not all it is a view of"
    copied.x.zero_()
    copied.edge_index.zero_()
    copied.names[1].append("c")
    assert whole[2, 0] == 4 and graph.edge_index.sum() == 2 and graph.names == ["a", ["b"]]


def test_graphs_are_known_by_their_content() -> None:
    def graph(**changes: Any) -> Data:
        edges = torch.tensor([[0, 1], [1, 0]])
        return Data(**{"x": torch.ones(2, 1), "edge_index": edges, "y": torch.tensor([0]), **changes}, num_nodes=2)

    changes: list[TrialRecord] = [
        {},
        {"x": torch.zeros(2, 1)},
        {"x": torch.ones(2, 1).double()},
        {"edge_index": torch.tensor([[1, 0], [0, 1]])},
        {"y": torch.tensor([1])},
        {"y": torch.tensor([[1.0, 0.0]])},
        {"edge_weight": torch.ones(2)},
    ]
    assert len({contents_of([graph(**change)]) for change in changes}) == len(changes)
    assert contents_of([graph(), graph()]) != contents_of([graph()])
    assert contents_of([graph()]) == contents_of([graph()])
