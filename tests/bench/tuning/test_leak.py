"""A setting is chosen on its own fold's graphs alone: the choice is the same whatever the rest of the data is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from bench.datasets import load_dataset
from bench.execution.pool import PoolSetup
from bench.execution.serial import SerialPool
from bench.execution.worker import WorkerSettings
from bench.plan.cells import Cell
from bench.protocol.budgets import labeled_graphs, validation_budget
from bench.protocol.seeds import TrialSeeds
from bench.protocol.splits import load_splits, resolve_splits
from bench.tuning import objective as module
from bench.tuning.storage import Storage
from bench.tuning.study import MethodStudy
from bench.tuning.tuner import Tuner

FOLD = 1


class Forbidden:
    """In the place of a graph that nobody is to touch."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a graph outside the fold's development part was asked for its {name}")


@pytest.fixture
def cell(tuning: ModuleType) -> Cell:
    made: Cell = tuning.cell("dropedge", k=3, epochs=20)
    return made


def poison(monkeypatch: pytest.MonkeyPatch, cell: Cell, root: Path) -> None:
    """Spoil all but the development part of FOLD: other labels are wrong, other graphs must not be touched."""
    data = load_dataset(cell.dataset, root)
    splits = load_splits(cell.dataset, cell.splits, data.labels, root)
    part = splits.development(FOLD)
    own = {*part.train.tolist(), *part.validation.tolist()}
    graphs: list[Any] = [graph if index in own else Forbidden() for index, graph in enumerate(data.graphs)]
    labels = np.array([label if i in own else (label + 1) % 4 for i, label in enumerate(data.labels.tolist())])
    monkeypatch.setattr(module, "load_dataset", lambda *_: replace(data, graphs=graphs, labels=labels))
    monkeypatch.setattr(module, "load_splits", lambda *_: splits)  # else made from the labels


def searched(
    studies: Sequence[MethodStudy], root: Path, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> list[Any]:
    monkeypatch.setattr(module, "_OBJECTIVES", {})  # what a worker has loaded before
    settings = WorkerSettings(str(root), "fast")
    Tuner(studies, "budget", SerialPool(PoolSetup(settings, 1)), tuning.Clock(), settings=settings).run()
    return [tuning.sequence(study) for study in studies]


def test_a_nested_search_is_the_same_whatever_lies_outside_its_fold(
    cell: Cell, tmp_path: Path, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, narrowing = [], {"gcn.dropout": "0"}
    for folder in ("whole", "poisoned"):
        (tmp_path / folder).mkdir()
        if folder == "poisoned":
            poison(monkeypatch, cell, tmp_path)
        study = tuning.by_fold(Storage(tuning.url(tmp_path / folder)), cell, 5, narrowing)[FOLD]
        found += searched([study], tmp_path, tuning, monkeypatch)
    assert found[0] == found[1] and {row[1] for row in found[0]} == {"COMPLETE"}
    assert len({row[2] for row in found[0]}) > 1, "settings that make no difference would prove nothing"


def test_the_poison_is_noticed_by_a_pooled_search(
    cell: Cell, tmp_path: Path, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the test above would look like with a leak."""
    poison(monkeypatch, cell, tmp_path)
    study = tuning.study(Storage(tuning.url(tmp_path)), cell, 2, {"gcn.dropout": "0"})
    [rows] = searched([study], tmp_path, tuning, monkeypatch)
    assert {row[1] for row in rows} == {"FAIL"}
    reasons = {trial.user_attrs["reason"] for trial in study.study.get_trials()}
    assert all("outside the fold's development part" in reason for reason in reasons)


@pytest.mark.parametrize(("dataset", "share"), [("PROTEINS", 30.5), ("MUTAG", 87.3)])
def test_how_much_of_a_test_part_a_pooled_search_looks_at(data_root: Path, dataset: str, share: float) -> None:
    """The figures of docs/tuning.md: test graphs whose labels the search on other folds uses, at k = 10."""
    labels, family = load_dataset(dataset, data_root).labels, resolve_splits(dataset, "auto", data_root)
    splits, used = load_splits(dataset, family, labels, data_root), []
    for fold in range(splits.num_folds):
        part, seeds = splits.development(fold), TrialSeeds(dataset, family, fold, 0)
        draws = (labeled_graphs(labels, part.train, 10, seeds), validation_budget(labels, part.validation, 10, seeds))
        used.append({index for draw in draws for index in draw.tolist()})
    seen = []
    for fold in range(splits.num_folds):
        test = set(splits.test(fold).tolist())
        assert not test & used[fold], "a fold's own study has none of them"
        seen.append(len(test & set().union(*used)) / len(test))
    assert 100 * float(np.mean(seen)) == pytest.approx(share, abs=0.05)
