"""The objective: labeled and validation graphs of one fold, the numbers that a study stores, and no test index."""

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
from bench.protocol.budgets import HIDDEN
from bench.protocol.splits import DevelopmentSplits, Splits, load_splits
from bench.registry import UserError
from bench.tuning import objective as module
from bench.tuning.objective import FoldDevelopment, Objective, score
from bench.tuning.storage import Storage
from bench.tuning.summary import summarize
from bench.tuning.tuner import Tuner
from models.fit import Diverged, TrainedNetwork

ENGINE = "fast"


@pytest.fixture(scope="module")
def cell(tuning: ModuleType) -> Cell:
    made: Cell = tuning.cell("dropedge", k=3)
    return made


@pytest.fixture
def objective(cell: Cell, tmp_path: Path) -> Objective:
    return objective_of(cell, 2, tmp_path)


def objective_of(cell: Cell, fold: int, root: Path) -> Objective:
    return Objective(FoldDevelopment.load(cell.dataset, cell.splits, fold, root), engines()[ENGINE]())


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


@pytest.mark.parametrize("fold", [0, 7])
def test_nothing_but_its_own_fold_can_be_reached_from_an_objective(cell: Cell, tmp_path: Path, fold: int) -> None:
    objective, splits = objective_of(cell, fold, tmp_path), splits_of(cell, tmp_path)
    objective.accuracy(cell, Trial(fold, 0))
    assert not any(isinstance(one, Splits | DevelopmentSplits) for one in reachable(objective))
    held = index_sets(objective)
    for other in range(10):
        development = splits.development(other)
        for part in (development.train, development.validation):
            assert (frozenset(part.tolist()) in held) == (other == fold)
        assert frozenset(splits.test(other).tolist()) not in held


@pytest.mark.parametrize("fold", [0, 7])
def test_an_objective_has_neither_graphs_nor_labels_of_test_graphs(cell: Cell, tmp_path: Path, fold: int) -> None:
    objective, splits = objective_of(cell, fold, tmp_path), splits_of(cell, tmp_path)
    every, test = load_dataset(cell.dataset, tmp_path).graphs, splits.test(fold).tolist()
    held = objective.fold(cell, Trial(fold, 0))
    # Features are put on a copy of a graph, its edges are the very same.
    edges = {id(one.edge_index) for one in reachable(objective) if isinstance(one, Data)}
    assert edges and not edges & {id(every[i].edge_index) for i in test}
    for graph, original in zip(objective.problem(cell, held).graphs, held.labeled, strict=True):
        assert torch.equal(graph.edge_index, original.edge_index)
        assert graph.edge_index.data_ptr() != original.edge_index.data_ptr()
    assert not objective.data.graphs.keys() & set(test)
    known = np.flatnonzero(objective.data.labels != HIDDEN).tolist()
    assert set(known) == {*splits.development(fold).train.tolist(), *splits.development(fold).validation.tolist()}


def test_an_objective_of_one_fold_refuses_another(objective: Objective, cell: Cell) -> None:
    with pytest.raises(UserError, match="the objective of fold 2 has no data of fold 3"):
        objective.accuracy(cell, Trial(3, 0))


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
    Tuner([study], "budget", pool, tuning.Clock(), settings=settings).run()
    facts = summarize(study.study)
    assert facts.count("failed") == 0 and facts.best is not None
    with pytest.raises(AssertionError, match="a test part was asked for"):
        TrialRunner(tmp_path, engines()[ENGINE]()).problem(cell, Trial(0, 0))

    # The stored value is what the best settings give again, fold by fold.
    tuned = study.space.apply(cell, facts.best.settings)
    again = [objective_of(cell, fold, tmp_path).accuracy(tuned, Trial(fold, 0)) for fold in range(tuning.FOLDS)]
    assert again == list(facts.best.accuracies) and facts.best.value == pytest.approx(np.mean(again))


def test_it_trains_what_a_run_would_train_on_the_labeled_graphs_alone(cell: Cell, tmp_path: Path) -> None:
    runner = TrialRunner(tmp_path, engines()[ENGINE]())
    for trial in (Trial(0, 0), Trial(7, 1)):
        run, _ = runner.problem(cell, trial)
        objective = objective_of(cell, trial.fold, tmp_path)
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
    assert len(whole.scored) == len(objective.data.part.validation) > 4


def test_the_mean_is_of_the_validation_graphs(
    objective: Objective, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def always_class_one(self: TrainedNetwork, graphs: list[Data]) -> torch.Tensor:
        return torch.eye(4)[[1] * len(graphs)]

    monkeypatch.setattr(TrainedNetwork, "probabilities", always_class_one)
    held = objective.fold(cell, Trial(2, 0))
    share = np.mean([int(graph.y) == 1 for graph in held.scored])
    assert objective.accuracy(cell, Trial(2, 0)) == pytest.approx(share)


def test_what_goes_wrong_is_part_of_the_answer(cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = WorkerSettings(str(tmp_path), ENGINE)

    def answer(changed: Cell) -> dict[str, Any]:
        work = {"cell": changed.to_json(), "fold": 0, "repeat": 0, "validation": "budget"}
        return score(settings, work)

    assert answer(cell)["status"] == "done"
    old = replace(cell, versions={**cell.versions, "torch": "1.0"})
    assert answer(old) == {"status": "failed", "reason": answer(old)["reason"]} and "torch" in answer(old)["reason"]
    other = replace(cell, versions={**cell.versions, "dataset": "0000"})
    assert "differs from the version" in answer(other)["reason"]

    for error, status, reason in (
        (RuntimeError("two\nlines"), "failed", "RuntimeError: two lines"),
        (Diverged("the loss is nan in epoch 3"), "diverged", "the loss is nan in epoch 3"),
    ):

        def raising(self: object, problems: list[Problem], error: Exception = error) -> list[Exception]:
            return [error]

        monkeypatch.setattr(engines()[ENGINE], "fit", raising)
        assert answer(cell) == {"status": status, "reason": reason}
