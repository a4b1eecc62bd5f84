"""Datasets as flat arrays: the same graphs, and arrays that are taken only where they are what was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from bench.datasets import load_dataset
from bench.datasets.base import GraphSet
from bench.datasets.cleaning import cleaned
from bench.datasets.flat import FlatGraphs
from bench.datasets.kept import ARRAYS, FACTS
from bench.datasets.loading import forget_loaded


def graph(nodes: int, label: int, edges: list[tuple[int, int]], **more: Any) -> Data:
    ends = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
    return Data(edge_index=ends, y=torch.tensor(label), num_nodes=nodes, **more)


def equal(one: Data, other: Data) -> bool:
    keys = set(one.keys())
    return keys == set(other.keys()) and all(
        torch.equal(one[key], other[key]) if isinstance(one[key], Tensor) else one[key] == other[key] for key in keys
    )


@pytest.mark.parametrize("features", [None, "one-hot", "real", "wide"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_graph_is_what_cleaning_made_of_it(features: str | None, weighted: bool) -> None:
    width = {"wide": 300}.get(features or "", 3)
    edges = [[(0, 1), (1, 2)], [], [(0, 3), (3, 1)]]
    graphs = [graph(nodes, label, edges[label]) for label, nodes in enumerate((3, 1, 4))]
    for one in graphs:
        if features is not None:
            columns = torch.arange(int(one.num_nodes or 0)) * 7 % width
            one.x = torch.nn.functional.one_hot(columns, width).float() + (0.5 if features == "real" else 0)
        if weighted:
            one.edge_weight = torch.full((one.num_edges,), 0.5)
    clean = [cleaned(one, label, weighted) for label, one in enumerate(graphs)]
    data = GraphSet.from_graphs("OWN", graphs)
    assert all(equal(*pair) for pair in zip(data.graphs, clean, strict=True))
    assert equal(data.graphs[-1], clean[-1]) and len(data.graphs[:2]) == 2
    flat = FlatGraphs.of(clean)
    assert all(equal(*pair) for pair in zip(FlatGraphs.read(flat.tensors(), flat.width), clean, strict=True))
    data.graphs[0].edge_index += 1
    assert equal(data.graphs[0], clean[0]), "what is handed out is a copy"


def test_arrays_that_lead_elsewhere_are_refused() -> None:
    flat = FlatGraphs.of([cleaned(graph(3, 0, [(0, 1)], x=torch.eye(3)), 0, False)] * 2)

    def refused(name: str, change: Any) -> None:
        tensors = {key: tensor.clone() for key, tensor in flat.tensors().items()}
        tensors[name] = change(tensors[name])
        with pytest.raises(ValueError):
            FlatGraphs.read(tensors, flat.width)

    for number in (-1, 3):
        refused("edges", lambda edges, number=number: edges.index_fill(1, torch.tensor([3]), number))
        refused("features", lambda columns, number=number: columns.short().index_fill(0, torch.tensor(1), number))
    refused("nodes", lambda places: places + torch.tensor([0, 0, 1]))
    refused("ends", lambda places: torch.tensor([0, 5, 4]))
    refused("labels", lambda labels: labels[:1])
    refused("edges", lambda edges: edges.float())


def test_the_next_process_reads_no_text(tiny_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_dataset("TINY", tiny_root)
    forget_loaded()
    monkeypatch.setattr("bench.datasets.tu.read_graphs", None)  # it would fail
    again = load_dataset("TINY", tiny_root)
    assert again is not first and again.fingerprint == first.fingerprint
    assert again.has_features == first.has_features and again.num_classes == first.num_classes
    assert all(equal(*pair) for pair in zip(first.graphs, again.graphs, strict=True))


@pytest.mark.parametrize("damage", ["another content", "half", "another source", "no facts", "code in it"])
def test_arrays_that_are_not_as_noted_are_made_anew(tiny_root: Path, damage: str) -> None:
    first = load_dataset("TINY", tiny_root)
    folder = tiny_root / "tu" / "TINY" / "processed"
    arrays, facts = folder / ARRAYS, folder / FACTS
    if damage == "another content":
        tensors = torch.load(arrays, weights_only=True)
        tensors["labels"] = 1 - tensors["labels"]
        torch.save(tensors, arrays)
    elif damage == "half":
        arrays.write_bytes(arrays.read_bytes()[:100])
    elif damage == "another source":
        facts.write_text(facts.read_text().replace('"source": "', '"source": "0'))
    elif damage == "no facts":
        facts.write_text("[]")
    else:
        torch.save({"labels": Path("run me")}, arrays)
    forget_loaded()
    again = load_dataset("TINY", tiny_root)
    assert again.labels.tolist() == first.labels.tolist() and again.fingerprint == first.fingerprint
