"""Somebody else's package of under twenty lines gets the fast path, because it derives from a kind of augmenter."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from augmenters import AUGMENTERS
from augmenters.kinds import EdgeFactorAugmenter, kind_of
from bench.checking import check_augmenter
from bench.learning.fast.engine import FastEngine, fast_obstacle
from bench.learning.fast.training import epochs
from bench.registry import Entry
from models.backbones import GCN
from models.readouts import MeanReadout

PLUGIN = Path(__file__).resolve().parents[3] / "plugin" / "busyedges"
Make = Callable[..., Any]


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PLUGIN)
    spec = importlib.util.spec_from_file_location("busyedges", PLUGIN / "busyedges.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "busyedges", module)
    spec.loader.exec_module(module)
    return module


def test_it_is_short_and_says_where_it_is() -> None:
    assert len((PLUGIN / "busyedges.py").read_text().splitlines()) < 20
    points = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points["augbench.augmenters"] == {"busyedges": "busyedges:BusyEdges"}


@pytest.mark.usefixtures("one_thread")
def test_it_trains_on_the_fast_path(plugin: ModuleType, problem: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs.Epochs, "made_anew", lambda *_: pytest.fail("not the fast path"))
    assert kind_of(plugin.BusyEdges) is EdgeFactorAugmenter
    assert fast_obstacle(GCN, MeanReadout, plugin.BusyEdges) is None
    (fitted,) = FastEngine().fit([problem(plugin.BusyEdges())])
    assert (fitted.engine, fitted.handed_over) == ("fast", None)


@pytest.mark.usefixtures("one_thread", "double")
def test_both_engines_train_it_alike(plugin: ModuleType, problem: Make, same_training: Make) -> None:
    same_training(problem(plugin.BusyEdges(p=0.9)))


def test_it_keeps_the_contract(plugin: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AUGMENTERS.entries(), "busyedges", Entry("busyedges", plugin.BusyEdges))
    assert check_augmenter("busyedges").broken == []


def test_busy_edges_drop_more_often(plugin: ModuleType, some_graphs: Make) -> None:
    graphs = some_graphs(3)
    rng = np.random.default_rng(0)
    left = [sum(graph.num_edges for graph in plugin.BusyEdges(p=p)(graphs, rng)) for p in (0.0, 0.5, 1.0)]
    assert left[0] == sum(graph.num_edges for graph in graphs) > left[1] > left[2]
