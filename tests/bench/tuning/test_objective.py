"""The objective: the k labelled graphs and validation graphs, the numbers that a study stores, and no test index."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bench.datasets import load_dataset
from bench.execution.pool import PoolSetup
from bench.execution.serial import SerialPool
from bench.execution.trial import TrialRunner, engines
from bench.execution.worker import WorkerSettings
from bench.learning.problem import Problem
from bench.plan.cells import Cell, Trial
from bench.protocol.splits import Splits, load_splits
from bench.tuning import objective as module
from bench.tuning.objective import DevelopmentData, Objective, score
from bench.tuning.storage import Storage
from bench.tuning.summary import summarise
from bench.tuning.tuner import Tuner
from models.fit import Diverged

ENGINE = "fast"


@pytest.fixture(scope="module")
def cell(tuning: ModuleType) -> Cell:
    made: Cell = tuning.cell("dropedge", k=3)
    return made


@pytest.fixture
def objective(cell: Cell, tmp_path: Path) -> Objective:
    return Objective(DevelopmentData.load(cell.dataset, cell.splits, tmp_path), engines()[ENGINE]())


def splits_of(cell: Cell, tmp_path: Path) -> Splits:
    return load_splits(cell.dataset, cell.splits, load_dataset(cell.dataset, tmp_path).labels, tmp_path)


def reachable(root: Any) -> Iterator[Any]:
    """Everything that can be got at from an object: attributes, slots, items, closures, defaults, bound selves."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, types.ModuleType | type | str | bytes | int | float):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif isinstance(one, types.FunctionType):
            waiting += [c.cell_contents for c in one.__closure__ or ()]
            waiting += [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        elif isinstance(one, types.MethodType):
            waiting += [one.__self__, one.__func__]
        elif isinstance(one, np.ndarray) and one.base is not None:
            waiting.append(one.base)
        elif not isinstance(one, torch.Tensor | np.ndarray):
            waiting += vars(one).values() if hasattr(one, "__dict__") else []
            for kind in type(one).__mro__:
                names = kind.__dict__.get("__slots__", ())
                waiting += [getattr(one, n) for n in ([names] if isinstance(names, str) else names) if hasattr(one, n)]


def index_sets(root: Any) -> list[frozenset[int]]:
    """Every array or list of whole numbers that can be reached, as a set."""
    found = []
    for one in reachable(root):
        if isinstance(one, np.ndarray | torch.Tensor) and one.ndim == 1:
            values = one.tolist()
        elif isinstance(one, list | tuple | set | frozenset):
            values = list(one)
        else:
            continue
        if values and all(type(value) is int for value in values):
            found.append(frozenset(values))
    return found


def test_the_walk_finds_what_it_is_to_find(cell: Cell, tmp_path: Path) -> None:
    """The proof below is worth as much as its walk: it finds test indices where they are."""
    splits = splits_of(cell, tmp_path)
    hidden = [splits, lambda: splits, {"deep": [(splits,)]}, splits.test, Objective.__init__, replace(splits)]
    for place in hidden:
        inside = any(isinstance(one, Splits) for one in reachable(place))
        assert inside == (place is not Objective.__init__)
    assert frozenset(splits.test(3).tolist()) in index_sets(splits)


def test_no_test_index_can_be_reached_from_the_objective(objective: Objective, cell: Cell, tmp_path: Path) -> None:
    for fold in range(10):
        objective.accuracy(cell, Trial(fold, 0))
    assert not any(isinstance(one, Splits) for one in reachable(objective))
    splits, held = splits_of(cell, tmp_path), index_sets(objective)
    for fold in range(10):
        test = frozenset(splits.test(fold).tolist())
        development = splits.development(fold)
        assert frozenset(development.train.tolist()) in held and frozenset(development.validation.tolist()) in held
        assert test not in held
    assert not hasattr(objective.data.splits, "test")


def test_a_fold_holds_no_graph_of_its_test_part(objective: Objective, cell: Cell, tmp_path: Path) -> None:
    splits = splits_of(cell, tmp_path)
    graphs = objective.data.graphs
    for fold in range(10):
        held = objective.fold(cell, Trial(fold, 0))
        # Features are put on a copy of a graph, its edges are the very same.
        edges = {id(one.edge_index) for one in reachable(held) if isinstance(one, Data)}
        assert edges and not edges & {id(graphs[i].edge_index) for i in splits.test(fold)}
        problem = objective.problem(cell, held)
        assert {id(graph.edge_index) for graph in problem.graphs} <= edges


def test_a_whole_search_never_asks_for_a_test_part(
    cell: Cell, tmp_path: Path, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Splits, fold: int) -> None:
        raise AssertionError("a test part was asked for")

    monkeypatch.setattr(Splits, "test", refuse)
    monkeypatch.setattr(module, "_OBJECTIVES", {})
    settings = WorkerSettings(str(tmp_path), ENGINE)
    pool = SerialPool(PoolSetup(settings, 1))
    study = tuning.study(Storage(tuning.url(tmp_path)), cell, 3, {"gcn.dropout": "0"})
    Tuner(
        [study], [Trial(fold, 0) for fold in range(tuning.FOLDS)], "budget", pool, tuning.Clock(), settings=settings
    ).run()
    facts = summarise(study.study)
    assert facts.count("failed") == 0 and facts.best is not None
    with pytest.raises(AssertionError, match="a test part was asked for"):
        TrialRunner(tmp_path, engines()[ENGINE]()).problem(cell, Trial(0, 0))

    # The stored value is what the best settings give again, fold by fold.
    tuned = study.space.apply(cell, facts.best.settings)
    fresh = Objective(DevelopmentData.load(cell.dataset, cell.splits, tmp_path), engines()[ENGINE]())
    assert [fresh.accuracy(tuned, Trial(fold, 0)) for fold in range(tuning.FOLDS)] == list(facts.best.folds)
    assert facts.best.value == pytest.approx(np.mean(facts.best.folds))


def test_it_trains_what_a_run_would_train_on_the_labelled_graphs_alone(
    objective: Objective, cell: Cell, tmp_path: Path
) -> None:
    runner = TrialRunner(tmp_path, engines()[ENGINE]())
    for trial in (Trial(0, 0), Trial(7, 1)):
        run, _ = runner.problem(cell, trial)
        tuned = objective.problem(cell, objective.fold(cell, trial))
        assert len(tuned.graphs) == 3 * tuned.num_classes, "k of each class"
        for name in ("init_seed", "augment_seed", "pretrain_seed", "training", "backbone", "readout", "num_classes"):
            assert getattr(tuned, name) == getattr(run, name)
        assert tuned.shared_seed("x") == run.shared_seed("x") and tuned.augmenter == run.augmenter
        for one, other in zip(tuned.graphs, run.graphs, strict=True):
            assert one.edge_index.equal(other.edge_index) and one.x.equal(other.x) and one.y.equal(other.y)


def test_validation_graphs_are_as_many_as_labels_unless_the_whole_part_is_asked_for(
    objective: Objective, tuning: ModuleType
) -> None:
    cell = tuning.cell(k=1)
    held = objective.fold(cell, Trial(2, 0))
    classes = torch.cat([graph.y for graph in held.scored]).tolist()
    assert sorted(classes) == [0, 1, 2, 3], "one of each class, as there is one label of each"
    whole = Objective(objective.data, objective.engine, "full").fold(cell, Trial(2, 0))
    assert len(whole.scored) == len(objective.data.splits.development(2).validation) > 4


def test_the_mean_is_of_the_validation_graphs(
    objective: Objective, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always_class_one(model: object, graphs: list[Data], device: str) -> torch.Tensor:
        return torch.eye(4)[[1] * len(graphs)]

    monkeypatch.setattr(module, "predict", always_class_one)
    held = objective.fold(cell, Trial(0, 0))
    share = np.mean([int(graph.y) == 1 for graph in held.scored])
    assert objective.accuracy(cell, Trial(0, 0)) == pytest.approx(share)


def test_what_goes_wrong_is_part_of_the_answer(cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = WorkerSettings(str(tmp_path), ENGINE)

    def answer(changed: Cell) -> dict[str, Any]:
        work = {"cell": changed.to_json(), "fold": 0, "repeat": 0, "validation": "budget"}
        return score(settings, work)

    assert answer(cell)["status"] == "done"
    old = replace(cell, versions={**cell.versions, "torch": "1.0"})
    assert answer(old) == {"status": "failed", "reason": answer(old)["reason"]} and "torch" in answer(old)["reason"]
    other = replace(cell, versions={**cell.versions, "dataset": "0000"})
    assert "another version" in answer(other)["reason"]

    for error, status, reason in (
        (RuntimeError("two\nlines"), "failed", "RuntimeError: two lines"),
        (Diverged("the loss is nan in epoch 3"), "diverged", "the loss is nan in epoch 3"),
    ):

        def raising(self: object, problems: list[Problem], error: Exception = error) -> list[Exception]:
            return [error]

        monkeypatch.setattr(engines()[ENGINE], "fit", raising)
        assert answer(cell) == {"status": status, "reason": reason}
