"""Graphs as somebody's own loop may hand them over: with self loops, without labels or features, or not as a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hand_graphs import edges_of, path, ring
from torch_geometric.data import Batch, Data

from augmenters import AUGMENTERS, DropEdge, GraphAugmenter, MaskAttr, NodeSam, PerturbEdge, SubMix
from bench.registry import UserError


def stream() -> np.random.Generator:
    return np.random.default_rng(0)


def looped(graph: Data) -> Data:
    """A self loop at every node, of weight 9; the other edges weigh 1."""
    every = torch.arange(graph.num_nodes)
    weights = torch.cat([torch.ones(graph.num_edges), torch.full((len(every),), 9.0)])
    new = Data(x=graph.x, edge_index=torch.cat([graph.edge_index, every.repeat(2, 1)], dim=1), y=graph.y)
    new.edge_weight = weights
    return new


def bare(graph: Data) -> Data:
    """Without a label."""
    return Data(x=graph.x, edge_index=graph.edge_index)


@pytest.mark.parametrize(
    ("graphs", "rng", "reason"),
    [
        (Batch.from_data_list([ring(4), path(3)]), stream(), r"takes a list of graphs, .* batch\.to_data_list\(\)"),
        (ring(4), stream(), r"takes a list of graphs, not a single Data; give \[graph\]"),
        ([ring(4)], 0, r"draws from a generator of numpy, not from 0; give numpy\.random\.default_rng"),
        ([], stream(), "was given no graphs"),
        ([ring(4), Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=0)], stream(), "graph 1 has no node"),
        ([Data(x=torch.ones(2, 1))], stream(), "graph 0 has no edge_index"),
    ],
)
def test_what_cannot_be_augmented_is_told_in_one_line(graphs: Any, rng: Any, reason: str) -> None:
    with pytest.raises(UserError, match=f"DropEdge.*{reason}"):
        DropEdge()(graphs, rng)


def test_graphs_without_labels_are_no_obstacle_where_labels_stay() -> None:
    count = 0
    for name in AUGMENTERS.names():
        cls = AUGMENTERS.load(name)
        if issubclass(cls, GraphAugmenter) and cls.labels == "kept":
            made = AUGMENTERS.create(name)([bare(ring(8)), bare(path(6))], stream())
            assert all(graph.y is None for graph in made), name
            count += 1
    assert count >= 12
    with pytest.raises(UserError, match="a graph has no label, and this method mixes labels"):
        SubMix()([bare(ring(8)), bare(path(6))], stream())


def test_features_can_only_be_changed_where_there_are_some() -> None:
    none = Data(edge_index=ring(5).edge_index, num_nodes=5)
    with pytest.raises(UserError, match="MaskAttr changes node features, and a graph has none"):
        MaskAttr().as_transform()(none)
    assert DropEdge(p=0.0)([none], stream())[0].x is None


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_a_self_loop_is_exchanged_as_any_edge_and_listed_once(p: float) -> None:
    (made,) = PerturbEdge(p=p)([looped(ring(8))], stream())
    ways = list(map(tuple, made.edge_index.T.tolist()))
    loops = sum(i == j for i, j in ways)
    assert len(set(ways)) == len(ways) and len(edges_of(made)) + loops == 16
    assert loops <= 8 and (loops == 8) == (p == 0)


def test_a_self_loop_is_not_what_is_merged() -> None:
    for seed in range(40):
        made, alone = NodeSam()([looped(ring(6)), looped(path(1))], np.random.default_rng(seed))
        assert (made.num_nodes, len(made.x), alone.num_nodes) == (6, 6, 1)
        looping = made.edge_index[0] == made.edge_index[1]
        assert int(looping.sum()) >= 5 and made.edge_weight[looping].unique().tolist() == [9.0]
        assert alone.edge_index.tolist() == [[0], [0]]
