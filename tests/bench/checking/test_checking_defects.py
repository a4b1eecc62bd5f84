"""Each known way to break the contract of augmenters is found, and its value named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import EmbeddingAugmenter, GraphAugmenter
from bench.checking import check_augmenter


class Copies(GraphAugmenter):
    """Harmless: the graphs as they are, to be broken in one way by each class below."""

    when: ClassVar[str] = "epoch"

    def draw(self, graphs, rng, context):
        return rng.random(len(graphs))

    def apply(self, graphs, drawn):
        return [self.spoil(graph.clone(), share) for graph, share in zip(graphs, drawn, strict=True)]

    def spoil(self, graph, share):
        return graph


class OtherGraph(Copies):
    def spoil(self, graph, share):
        if graph.num_edges:
            edge = torch.tensor([[0, graph.num_nodes], [graph.num_nodes, 0]])
            graph.edge_index = torch.cat([graph.edge_index, edge], dim=1)
            if graph.get("edge_weight") is not None:
                graph.edge_weight = torch.cat([graph.edge_weight, torch.ones(2)])
        return graph


class OneWay(Copies):
    """Directions dropped one by one, as several public versions do."""

    def spoil(self, graph, share):
        keep = torch.from_numpy(np.random.default_rng(int(share * 1e6)).random(graph.num_edges) > 0.3)
        graph.edge_index = graph.edge_index[:, keep]
        if graph.get("edge_weight") is not None:
            graph.edge_weight = graph.edge_weight[keep]
        return graph


class UnevenWeights(Copies):
    weighted: ClassVar[bool] = True

    def spoil(self, graph, share):
        graph.edge_weight = torch.arange(1.0, graph.num_edges + 1)
        return graph


class Doubled(Copies):
    def spoil(self, graph, share):
        graph.edge_index = torch.cat([graph.edge_index, graph.edge_index], dim=1)
        if graph.get("edge_weight") is not None:
            graph.edge_weight = graph.edge_weight.repeat(2)
        return graph


class Loops(Copies):
    def spoil(self, graph, share):
        if graph.get("edge_weight") is None:
            graph.edge_index = torch.cat([graph.edge_index, torch.zeros(2, 1, dtype=torch.long)], dim=1)
        return graph


class RowsStay(Copies):
    """A node dropped from the edges alone: an add readout still counts its row."""

    def spoil(self, graph, share):
        keep = (graph.edge_index != int(share * graph.num_nodes)).all(dim=0)
        graph.edge_index = graph.edge_index[:, keep]
        if graph.get("edge_weight") is not None:
            graph.edge_weight = graph.edge_weight[keep]
        return graph


class MissingRow(Copies):
    def spoil(self, graph, share):
        graph.num_nodes, graph.x = graph.num_nodes, graph.x[1:] if graph.num_nodes > 1 else graph.x
        return graph


class HeavyLabel(Copies):
    labels: ClassVar[str] = "mixed"

    def spoil(self, graph, share):
        graph.y = torch.full((1, 10), 0.5)
        return graph


class OtherLabel(Copies):
    def spoil(self, graph, share):
        graph.y = (graph.y + 1) % 2
        return graph


class NotANumber(Copies):
    def spoil(self, graph, share):
        graph.x = graph.x / graph.x.sum(dim=0)  # a feature that no node has
        return graph


class NoWeight(Copies):
    weighted: ClassVar[bool] = True

    def spoil(self, graph, share):
        graph.edge_weight = torch.zeros(graph.num_edges)
        return graph


class HiddenWeights(Copies):
    def spoil(self, graph, share):
        graph.edge_weight = torch.ones(graph.num_edges)
        return graph


class LostWeights(Copies):
    def spoil(self, graph, share):
        return Data(x=graph.x, edge_index=graph.edge_index, y=graph.y)


class InPlace(Copies):
    """An edit of the training set itself: deletions would pile up over the epochs."""

    def apply(self, graphs, drawn):
        for graph in graphs:
            graph.x.clamp_(max=0.5)
        return super().apply(graphs, drawn)


class Unseeded(Copies):
    def spoil(self, graph, share):
        graph.x = graph.x * np.random.random()
        return graph


class SeedsTheWorld(Copies):
    def draw(self, graphs, rng, context):
        torch.manual_seed(int(rng.integers(1000)))
        return torch.rand(len(graphs))


class Remembering(Copies):
    """A cache without the seed in its key."""

    def __init__(self):
        self.seen = {}

    def draw(self, graphs, rng, context):
        return self.seen.setdefault(len(graphs), rng.random(len(graphs)))

    def spoil(self, graph, share):
        graph.x = graph.x * share
        return graph


class Stale(Copies):
    """A cache that gives what it made of the first graphs to whoever asks, if there are as many."""

    def __init__(self):
        self.made = {}

    def apply(self, graphs, drawn):
        return [graph.clone() for graph in self.made.setdefault(len(graphs), super().apply(graphs, drawn))]


class StaleByName(Stale):
    """The same in all instances, as a cache file is."""

    def __init__(self, made={}):  # noqa: B006
        self.made = made


class DrawsInApply(Copies):
    calls = 0

    def spoil(self, graph, share):
        DrawsInApply.calls += 1
        graph.x = graph.x * (1 + DrawsInApply.calls)
        return graph


@dataclass(frozen=True)
class NeverWeak(Copies):
    p: float = 0.5

    def spoil(self, graph, share):
        graph.x = graph.x * 0.9
        return graph


class NeedsEdges(Copies):
    def spoil(self, graph, share):
        graph.edge_index.max()
        return graph


class NeverCalled(Copies):
    when: ClassVar[str] = "batch"


class Nothing(Copies):
    def apply(self, graphs, drawn):
        return []


class WithGradient(Copies):
    def spoil(self, graph, share):
        graph.x = graph.x.clone().requires_grad_()
        return graph


class Flattened(EmbeddingAugmenter):
    def draw(self, graphs, rng, context):
        return None

    def mix(self, embeddings, targets, drawn):
        return embeddings.mean(dim=0), targets


class Detached(Flattened):
    def mix(self, embeddings, targets, drawn):
        return embeddings.detach().clone(), targets


class LightLabels(Flattened):
    def mix(self, embeddings, targets, drawn):
        return embeddings * 1, targets / 2


class MixesInPlace(Flattened):
    def mix(self, embeddings, targets, drawn):
        return embeddings * 1, targets.mul_(0.5)


DEFECTS = [
    (OtherGraph, "edges join nodes that exist", "mixed sizes, graph 0: edge 0-9 in a graph of 9 nodes"),
    (OtherGraph, "no edge between graphs of a batch", "an edge joins graph 0 to graph 1"),
    (OneWay, "undirected stays undirected", "has no way back"),
    (UnevenWeights, "undirected stays undirected", "one way and"),
    (Doubled, "no edge is listed twice", "is there 2 times"),
    (Loops, "no self loops", "edge 0 to itself"),
    (RowsStay, "dropped nodes leave x", "complete graph lost all their edges and are still rows of x"),
    (MissingRow, "dropped nodes leave x", "x has 8 rows for 9 nodes"),
    (HeavyLabel, "labels are distributions", "y has shape [1, 10], not [1, 2]"),
    (OtherLabel, "labels are kept", "mixed sizes, graph 0"),
    (NotANumber, "numbers are finite", "x holds nan"),
    (NoWeight, "edge weights positive and declared", "a weight is 0"),
    (HiddenWeights, "edge weights positive and declared", "the attribute `weighted`"),
    (LostWeights, "edge weights positive and declared", "the originals have edge weights, it has none"),
    (InPlace, "the input is untouched", "mixed sizes: graph 0: x was"),
    (Unseeded, "no global random state is used", "numpy.random moved"),
    (Unseeded, "same seed, same result", "x was"),
    (SeedsTheWorld, "no global random state is used", "torch's default generator moved"),
    (Remembering, "same seed, same result", "an instance in use beside a new one"),
    (Stale, "same seed, same result", "weighted graphs, a second time: graph 0"),
    (StaleByName, "labels are kept", "graph 0"),
    (DrawsInApply, "the drawing is all in draw", "applied twice"),
    (NeverWeak, "nothing changes at strength 0", "p=0, mixed sizes, graph 0: x was"),
    (NeedsEdges, "works on: graphs without edges", "RuntimeError: max()"),
    (NeverCalled, "says when and how it works", "when is 'batch', not offline or epoch"),
    (Nothing, "graphs can be trained on", "no graph was generated from 6"),
    (WithGradient, "graphs can be trained on", "requires a gradient"),
    (Flattened, "mix keeps shapes", "embeddings [6, 8] became [8]"),
    (Detached, "mix lets the gradient through", "the backbone would not learn"),
    (LightLabels, "mix keeps label mass", "row 0: targets are [0.5, 0.0]"),
    (MixesInPlace, "works on: mixed sizes", "return new tensors"),
]


def found(cls: type) -> dict[str, str]:
    """What is broken of one of the classes above."""
    return {finding.title: finding.detail for finding in check_augmenter(cls.__name__).broken}


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    """The classes of this file as if they were installed."""
    entries = dict(AUGMENTERS.entries())
    monkeypatch.setattr(AUGMENTERS, "_entries", entries)
    for cls in {cls for cls, _, _ in DEFECTS} | {Copies}:
        AUGMENTERS.add(cls.__name__, cls)


@pytest.mark.parametrize(("cls", "title", "words"), DEFECTS, ids=[f"{c.__name__}: {t}" for c, t, _ in DEFECTS])
def test_a_defect_is_found_and_its_value_named(cls, title, words):
    broken = found(cls)
    assert words in broken.get(title, f"not found; broken are {broken}")


def test_what_is_harmless_is_not_accused():
    assert found(Copies) == {}


def test_a_defect_breaks_no_more_than_it_must():
    assert set(found(Loops)) == {"no self loops"}
    assert set(found(InPlace)) == {"the input is untouched"}
