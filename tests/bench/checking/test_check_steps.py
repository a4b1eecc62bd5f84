"""What `bench check` says of step augmenters."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from augmenters import AUGMENTERS
from augmenters.base import StepAugmenter
from bench.checking import check

METHODS = Path(__file__).parents[1] / "learning" / "step_methods.py"


class Plain(StepAugmenter):
    """Harmless: learns from the graphs as they are."""

    def draw(self, graphs, rng, context):
        return float(rng.random())

    def step(self, view, graphs, drawn):
        view.learn(self.changed([graph.clone() for graph in graphs], drawn))

    def changed(self, graphs, drawn):
        for graph in graphs:
            graph.x = graph.x * drawn
        return graphs


class InPlace(Plain):
    def step(self, view, graphs, drawn):
        view.learn(self.changed(graphs, drawn))


class Idle(Plain):
    def step(self, view, graphs, drawn):
        view.saliency(graphs)


class Stateful(Plain):
    """Carries something from one step to the next."""

    last = 1.0

    def changed(self, graphs, drawn):
        self.last = self.last * drawn
        return super().changed(graphs, self.last)


class Tampering(Plain):
    def step(self, view, graphs, drawn):
        super().step(view, graphs, drawn)
        with torch.no_grad():
            next(view.model.parameters()).fill_(1)


class BadEdges(Plain):
    def changed(self, graphs, drawn):
        for graph in graphs:
            if graph.get("edge_weight") is None and graph.num_nodes > 2:
                graph.edge_index = graph.edge_index[:, 1:]
        return graphs


class OtherDraws(Plain):
    def changed(self, graphs, drawn):
        return super().changed(graphs, float(torch.rand(())))


DEFECTS = [
    (InPlace, "the input is untouched", "mixed sizes: graph 0: x was"),
    (Idle, "works on: mixed sizes", "step never called view.learn; call it"),
    (Stateful, "same seed, same result", "an instance in use beside a new one"),
    (Tampering, "works on: mixed sizes", "step changed the weights of the model"),
    (BadEdges, "undirected stays undirected", "has no way back"),
    (OtherDraws, "no global random state is used", "torch's default generator moved"),
]


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    """The classes of this file as if they were installed."""
    monkeypatch.setattr(AUGMENTERS, "_entries", dict(AUGMENTERS.entries()))
    for cls in {cls for cls, _, _ in DEFECTS} | {Plain}:
        AUGMENTERS.add(cls.__name__, cls)


def found(spec: str) -> dict[str, str]:
    return {finding.title: finding.detail for finding in check(spec).broken}


@pytest.mark.parametrize(("cls", "title", "words"), DEFECTS, ids=[f"{d[0].__name__}: {d[1]}" for d in DEFECTS])
def test_a_defect_is_found_and_its_value_named(cls, title, words):
    broken = found(f"{AUGMENTERS.kind}:{cls.__name__}")
    assert words in broken.get(title, f"not found; broken are {broken}")


def test_what_is_harmless_is_not_accused():
    assert found("Plain") == {}


@pytest.mark.parametrize("name", ["Ascent", "Transplant"])
def test_methods_with_gradients_and_saliencies_hold(name):
    spec = importlib.util.spec_from_file_location("checked_step_methods", METHODS)
    module = sys.modules["checked_step_methods"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    AUGMENTERS.add(name, getattr(module, name))
    assert found(name) == {}
