"""A file of graphs: taken in whole, and nothing in it can run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from bench.datasets import load_dataset
from bench.datasets.graph_files import import_graphs
from bench.registry import UserError

Make = Callable[..., list[Data]]


class Runs:
    """What a pickle can do to whoever opens it."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.mark,)


def test_a_list_of_graphs_becomes_a_dataset(tmp_path: Path, some_graphs: Make) -> None:
    graphs = some_graphs(1, weighted=True)
    graphs[0].extra = torch.ones(3)
    torch.save(graphs, tmp_path / "few.pt")
    brought = import_graphs(tmp_path / "few.pt", tmp_path)
    assert (brought.what, brought.outcome, brought.detail) == ("few", "new", "6 graphs")
    assert import_graphs(tmp_path / "few.pt", tmp_path).outcome == "unchanged"
    assert import_graphs(tmp_path / "few.pt", tmp_path, metric="macro_f1").outcome == "replaced"
    back = load_dataset("few", tmp_path)
    assert len(back.graphs) == 6 and back.weighted and "extra" not in back.graphs[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda mark, graphs: [Runs(mark)], "contains something other than tensors and graphs"),
        (lambda mark, graphs: [*graphs, Runs(mark)], "contains something other than tensors and graphs"),
        (lambda mark, graphs: {"graphs": graphs}, "holds a dict, not a list"),
        (lambda mark, graphs: [], "not a list of graphs"),
        (lambda mark, graphs: [*graphs, torch.ones(2)], "item 6 is a Tensor"),
        (lambda mark, graphs: [Data(x=torch.ones(2, 1), y=torch.tensor([0]))], "graph 0 has no edge_index"),
        (lambda mark, graphs: [Data(edge_index="edges", y=0, num_nodes=3)], "edge_index of graph 0 is a str"),
        (lambda mark, graphs: [graphs[0], Data(edge_index=torch.tensor([[0], [9]]), y=0, num_nodes=2)], "outside 0..1"),
        (lambda mark, graphs: graphs[:1], "two are needed"),
        (lambda mark, graphs: [*graphs, Data(edge_index=graphs[0].edge_index, y=torch.tensor(0.5))], "graph 6"),
    ],
)
def test_anything_else_is_refused_in_one_line(
    tmp_path: Path, some_graphs: Make, content: Callable[..., Any], words: str
) -> None:
    mark = tmp_path / "it ran"
    torch.save(content(mark, some_graphs(1)), tmp_path / "file.pt")
    with pytest.raises(UserError, match=words):
        import_graphs(tmp_path / "file.pt", tmp_path / "data")
    assert not mark.exists(), "code in the file ran"
    assert not list((tmp_path / "data").glob("graphs/*/graphs.pt"))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02]q\x00.", os.urandom(200)])
def test_broken_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.pt").write_bytes(content)
    with pytest.raises(UserError, match=r"file\.pt"):
        import_graphs(tmp_path / "file.pt", tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        import_graphs(tmp_path / "missing.pt", tmp_path)
