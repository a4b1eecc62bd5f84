"""What is known of the paper's datasets, on the real files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bench.datasets import load_dataset

SIZES = {
    "PROTEINS": (1113, 43_471, 3),
    "NCI1": (4110, 122_747, 37),
    "DD": (1178, 334_925, 89),
    "IMDB-BINARY": (1000, 19_773, 0),
    "IMDB-MULTI": (1500, 19_502, 0),
    "MUTAG": (188, 3_371, 7),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str, data_root: Path) -> None:
    data = load_dataset(name, data_root)
    graphs, nodes, width = SIZES[name]
    assert len(data.graphs) == graphs
    assert sum(int(g.num_nodes or 0) for g in data.graphs) == nodes
    assert data.has_features == bool(width) and data.graphs[0].num_node_features == width
    assert data.num_classes == (3 if name == "IMDB-MULTI" else 2)


@pytest.mark.parametrize("name", SIZES)
def test_graphs_are_clean(name: str, data_root: Path) -> None:
    for graph in load_dataset(name, data_root).graphs:
        assert graph.is_undirected() and graph.is_coalesced() and not graph.has_self_loops()
        assert graph.edge_attr is None
        if graph.x is not None:
            assert torch.equal(graph.x.sum(dim=1), torch.ones(int(graph.num_nodes or 0)))


@pytest.mark.parametrize(("name", "percent"), [("PROTEINS", 59.57), ("DD", 58.66), ("NCI1", 50.05)])
def test_majority_classes(name: str, percent: float, data_root: Path) -> None:
    labels = load_dataset(name, data_root).labels
    assert round(100 * np.bincount(labels).max() / len(labels), 2) == percent


@pytest.mark.parametrize(("name", "percent"), [("IMDB-BINARY", 13.9), ("IMDB-MULTI", 52.6)])
def test_complete_graphs_among_the_actor_networks(name: str, percent: float, data_root: Path) -> None:
    """With the raw files' doubled edges kept, no graph would have n (n - 1) of them."""
    graphs = load_dataset(name, data_root).graphs
    complete = sum(g.num_edges == g.num_nodes * (g.num_nodes - 1) for g in graphs)
    assert round(100 * complete / len(graphs), 1) == percent


def test_small_and_isolated_in_nci1(data_root: Path) -> None:
    graphs = load_dataset("NCI1", data_root).graphs
    assert min(int(g.num_nodes or 0) for g in graphs) == 3
    assert sum(g.has_isolated_nodes() for g in graphs) == 399


def test_dd_is_large(data_root: Path) -> None:
    graphs = load_dataset("DD", data_root).graphs
    assert sum(g.num_edges for g in graphs) == 2 * 843_046
    assert max(int(g.num_nodes or 0) for g in graphs) == 5_748
