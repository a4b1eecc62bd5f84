"""Graphs from memory as a dataset: kept safely, known by their content, found by name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from bench.datasets import cheap_info, is_weighted, load_dataset
from bench.datasets.base import GraphSet
from bench.datasets.fingerprints import fingerprint, known_fingerprint
from bench.datasets.stored import store_graphs, stored_folder, stored_names
from bench.registry import UserError

Make = Callable[..., list[Data]]


@pytest.mark.parametrize(("features", "weighted"), [(0, False), (3, False), (4, True)])
def test_what_is_stored_comes_back(tmp_path: Path, some_graphs: Make, features: int, weighted: bool) -> None:
    graphs = some_graphs(1, one_hot=features, weighted=weighted)
    if not features:
        for graph in graphs:
            graph.x = None
    given = GraphSet.from_graphs("mine", graphs)
    assert store_graphs(graphs, tmp_path, "mine") == "mine"
    info = cheap_info("mine", tmp_path)
    assert (info.present, info.graphs, info.classes) == (True, 6, 2)
    assert (info.has_features, info.weighted) == (features > 0, weighted) == (given.has_features, given.weighted)
    assert known_fingerprint("mine", tmp_path) == given.fingerprint, "noted: no graph has to be read for a plan"
    back = load_dataset("mine", tmp_path)
    assert back.fingerprint == given.fingerprint and back.labels.tolist() == given.labels.tolist()
    assert is_weighted("mine", tmp_path) == weighted


def test_without_a_name_it_is_called_after_its_content(tmp_path: Path, some_graphs: Make) -> None:
    name = store_graphs(some_graphs(1), tmp_path)
    assert name == f"graphs-{GraphSet.from_graphs('any', some_graphs(1)).fingerprint}"
    assert store_graphs(some_graphs(1), tmp_path) == name, "the same graphs are the same dataset"
    other = store_graphs(some_graphs(2), tmp_path)
    assert other != name and stored_names(tmp_path) == {name, other}


def test_a_name_stands_for_one_content(tmp_path: Path, some_graphs: Make) -> None:
    store_graphs(some_graphs(1), tmp_path, "mine")
    with pytest.raises(UserError, match="different graphs under the name 'mine'"):
        store_graphs(some_graphs(2), tmp_path, "mine")
    for taken in ("PROTEINS", "digits", "MUTAG"):
        with pytest.raises(UserError, match=f"'{taken}' is the name of another dataset"):
            store_graphs(some_graphs(2), tmp_path, taken)
    with pytest.raises(UserError, match="cannot be the name"):
        store_graphs(some_graphs(2), tmp_path, "../mine")


def test_a_copied_data_root_is_read_again(tmp_path: Path, some_graphs: Make) -> None:
    """The note speaks of one file; a copy of it may be of anything."""
    store_graphs(some_graphs(1), tmp_path / "one", "mine")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert known_fingerprint("mine", tmp_path / "two") is None
    assert fingerprint("mine", tmp_path / "two") == fingerprint("mine", tmp_path / "one")
    assert cheap_info("mine", tmp_path / "two").present


class Harmful:
    """What a pickle could do: run any code when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_a_file_from_anywhere_runs_no_code(tmp_path: Path, some_graphs: Make) -> None:
    store_graphs(some_graphs(1), tmp_path, "mine")
    path = stored_folder(tmp_path, "mine") / "graphs.pt"
    whole = torch.load(path, weights_only=True)
    mark = tmp_path / "ran"
    for harmful in (Harmful(mark), [1], {**whole, "nodes": whole["nodes"] + 1}, {**whole, "edges": -whole["edges"]}):
        torch.save(harmful, path)
        with pytest.raises(UserError, match="is not a file of stored graphs"):
            load_dataset("mine", tmp_path)
    assert not mark.exists()


def test_a_damaged_note_is_as_good_as_none(tmp_path: Path, some_graphs: Make) -> None:
    store_graphs(some_graphs(1), tmp_path, "mine")
    expected, note = fingerprint("mine", tmp_path), stored_folder(tmp_path, "mine") / "note.json"
    for text in ("{", "[]", json.dumps({"stamp": 3})):
        note.write_text(text)
        assert fingerprint("mine", tmp_path) == expected


def test_graphs_that_are_no_dataset_leave_nothing_behind(tmp_path: Path, some_graphs: Make) -> None:
    with pytest.raises(UserError, match="two are needed"):
        store_graphs(some_graphs(1)[:1], tmp_path, "mine")
    assert not stored_names(tmp_path)
    shared = tmp_path / "shared"
    shared.write_text("a file")
    with pytest.raises(UserError, match="cannot write to the data root"):
        store_graphs(some_graphs(1), shared, "mine")
