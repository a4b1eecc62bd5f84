"""One trial from end to end, with a fake engine whose scores are known and with the real one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bench.datasets import load_dataset
from bench.execution.trial import TrialRunner, evaluate
from bench.learning.problem import Fitted, Problem
from bench.plan.cells import Cell, Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.protocol.splits import load_splits
from models.fit import Diverged


def cell_of(root: Path, augmenter: str = "none", k: int = 3, **changes: object) -> Cell:
    grid = Grid("test", product(["synthetic"], [augmenter], [k]), preset="quick", training={"epochs": 3}, **changes)  # type: ignore[arg-type]
    return Planner(root, "reference").plan(grid).cells[0]


class Oracle:
    """A predictor that always answers the same class."""

    def __init__(self, answer: int, num_classes: int) -> None:
        self.row = torch.nn.functional.one_hot(torch.tensor(answer), num_classes).float()

    def probabilities(self, graphs: Sequence[Data]) -> torch.Tensor:
        return self.row.expand(len(graphs), -1)


class SpyEngine:
    """Keeps what it was given; answers class 1 to everything, or fails as told."""

    name = "reference"  # under which the cells of these tests are planned

    def __init__(self, error: Exception | None = None) -> None:
        self.seen: list[Problem] = []
        self.error = error

    def fit(self, problems: Sequence[Problem]) -> list[Fitted | Exception]:
        self.seen.extend(problems)
        if self.error:
            return [self.error]
        return [Fitted(Oracle(1, problem.num_classes), 0.5, {}, {"train": 1.0}, ((1, 0.5),)) for problem in problems]


def content(graph: Data) -> bytes:
    """The edges and the label of a graph as a name for it."""
    return bytes(graph.edge_index.numpy().tobytes() + graph.y.numpy().tobytes())


def test_a_constant_answer_scores_the_share_of_its_class(tmp_path: Path) -> None:
    cell = cell_of(tmp_path)
    record = TrialRunner(tmp_path, SpyEngine()).run([(cell, Trial(0, 0))])[0]
    data = load_dataset("synthetic", tmp_path)
    test = load_splits("synthetic", "stratified", data.labels, tmp_path).test(0)
    share = float(np.mean(data.labels[test] == 1))
    assert record.status == "done"
    assert record.accuracy == pytest.approx(share)
    assert record.balanced_accuracy == pytest.approx(1 / data.num_classes)
    assert record.macro_f1 == pytest.approx(2 * share / (share + 1) / data.num_classes)
    assert record.predicted == {str(label): float(label == 1) for label in range(data.num_classes)}
    assert record.labels == 3 * data.num_classes
    assert set(record.seconds) == {"train", "evaluate"}


def test_the_engine_is_given_no_test_graph(tmp_path: Path) -> None:
    engine = SpyEngine()
    runner = TrialRunner(tmp_path, engine)
    data = load_dataset("synthetic", tmp_path)
    splits = load_splits("synthetic", "stratified", data.labels, tmp_path)
    position = {content(graph): number for number, graph in enumerate(data.graphs)}
    assert len(position) == len(data.graphs)
    for fold in range(3):
        runner.run([(cell_of(tmp_path), Trial(fold, 0))])
        problem = engine.seen[-1]
        used = {position[content(graph)] for graph in problem.graphs}
        assert len(used) == len(problem.graphs)
        assert used <= set(splits.development(fold).train.tolist())
        assert not used & set(splits.test(fold).tolist())
        assert not problem.validation


def test_every_method_of_a_trial_sees_the_same_graphs_and_the_same_first_weights(tmp_path: Path) -> None:
    engine = SpyEngine()
    runner = TrialRunner(tmp_path, engine)
    names = ["none", "dropedge", "m-mixup", "gdm-unc", "g-mixup"]
    runner.run([(cell_of(tmp_path, name), Trial(1, 2)) for name in names])
    first = engine.seen[0]
    for problem in engine.seen[1:]:
        assert [content(g) for g in problem.graphs] == [content(g) for g in first.graphs]
        assert problem.init_seed == first.init_seed
        assert problem.pretrain_seed == first.pretrain_seed
        assert problem.augment_seed != first.augment_seed
        assert problem.shared is first.shared
    runner.run([(cell_of(tmp_path, "none"), Trial(1, 1))])
    assert engine.seen[-1].init_seed != first.init_seed
    assert engine.seen[-1].shared is not first.shared


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (Diverged("the training loss is nan at epoch 7"), "diverged", "nan at epoch 7"),
        (MemoryError("16 GiB"), "failed", "out of memory: 16 GiB"),
        (RuntimeError("two\nlines"), "failed", "RuntimeError: two lines"),
    ],
)
def test_what_goes_wrong_is_a_record_with_a_reason(tmp_path: Path, error: Exception, status: str, words: str) -> None:
    record = TrialRunner(tmp_path, SpyEngine(error)).run([(cell_of(tmp_path), Trial(0, 0))])[0]
    assert record.status == status
    assert words in (record.reason or "") and record.accuracy is None


def test_best_val_gets_the_validation_part_and_nothing_more(tmp_path: Path) -> None:
    engine = SpyEngine()
    grid = Grid("test", product(["synthetic"]), training={"epochs": 2, "select": "best-val"})
    cell = Planner(tmp_path, "reference").plan(grid).cells[0]
    TrialRunner(tmp_path, engine).run([(cell, Trial(0, 0))])
    data = load_dataset("synthetic", tmp_path)
    fold = load_splits("synthetic", "stratified", data.labels, tmp_path).development(0)
    assert len(engine.seen[0].validation) == len(fold.validation)


def test_a_class_that_the_test_part_lacks_has_no_recall() -> None:
    graphs = [
        Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([y])) for y in (0, 0)
    ]
    scored = evaluate(Oracle(0, 3), graphs, 3)
    assert (scored["accuracy"], scored["balanced_accuracy"], scored["macro_f1"]) == (1.0, 1.0, 1.0)
    assert scored["predicted"] == {"0": 1.0, "1": 0.0, "2": 0.0}
