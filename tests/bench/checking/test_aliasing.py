"""An augmenter whose graphs lie in the memory of its input is found, and of the house there is none."""

from __future__ import annotations

import copy
from typing import ClassVar

import pytest
import torch

from augmenters import AUGMENTERS
from augmenters.base import GraphAugmenter
from bench.checking import check_augmenter

ROW = "shares no memory with the input"


class Copies(GraphAugmenter):
    """Harmless: graphs of its own, even where nothing changes."""

    when: ClassVar[str] = "epoch"

    def draw(self, graphs, rng, context):
        return rng.random(len(graphs))

    def apply(self, graphs, drawn):
        return [self.spoil(graph.clone(), share) for graph, share in zip(graphs, drawn, strict=True)]

    def spoil(self, graph, share):
        return graph


class ShallowCopies(Copies):
    """A write into the new graph would reach the original: in somebody's own loop, or in the next method."""

    def apply(self, graphs, drawn):
        new = [copy.copy(graph) for graph in graphs]
        for graph in new:
            graph.x = graph.x * 0.5
        return new


class NumpyViews(Copies):
    """The same by way of numpy, which hides it from a look at the first address."""

    def spoil(self, graph, share):
        graph.x = torch.from_numpy(self.given[0].x.numpy()[1:3])
        graph.edge_index, graph.num_nodes, graph.edge_weight = torch.tensor([[0, 1], [1, 0]]), 2, None
        return graph

    def apply(self, graphs, drawn):
        self.given = graphs
        return super().apply(graphs, drawn)


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    monkeypatch.setattr(AUGMENTERS, "_entries", dict(AUGMENTERS.entries()))
    for cls in (Copies, ShallowCopies, NumpyViews):
        AUGMENTERS.add(cls.__name__, cls)


def test_what_a_shallow_copy_shares_is_named():
    broken = {finding.title: finding.detail for finding in check_augmenter("ShallowCopies").broken}
    assert broken == {ROW: "mixed sizes: edge_index of graph 0 lies in the memory of original 0; clone it"}


def test_memory_that_is_shared_by_way_of_numpy_is_found():
    broken = {finding.title: finding.detail for finding in check_augmenter("NumpyViews").broken}
    assert "x of graph 0 lies in the memory of original 0" in broken[ROW]


@pytest.mark.parametrize("name", ["Copies", "none", "duplicate", "dropedge", "dropnode", "softedge", "gdm-complete"])
def test_copies_share_nothing(name):
    rows = {finding.title: finding.status for finding in check_augmenter(name).findings}
    assert rows[ROW] == "holds"
