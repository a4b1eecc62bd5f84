from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bench.datasets import DATASETS, cheap_info, load_dataset, resolve_dataset
from bench.datasets.base import GraphSet
from bench.datasets.importing import import_path
from bench.datasets.synthetic import FAMILIES
from bench.registry import UserError


def is_clean(data: GraphSet) -> bool:
    return all(
        g.is_undirected()
        and g.is_coalesced()
        and not g.has_self_loops()
        and g.y.shape == (1,)
        and g.y.dtype == torch.long
        for g in data.graphs
    )


def test_names_are_resolved_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from bench.datasets import DATASETS, cheap_info\n"
        "root = Path(sys.argv[1]); DATASETS.names()\n"
        "[cheap_info(name, root) for name in ('PROTEINS', 'MUTAG', 'digits', 'synthetic:nodes=40')]\n"
        "import bench.protocol.splits, bench.protocol.features, bench.protocol.budgets, bench.cli.commands.data\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_set_has_one_label_however_it_is_written(tmp_path: Path) -> None:
    assert resolve_dataset("PROTEINS", tmp_path) == resolve_dataset("tu:name=PROTEINS", tmp_path)
    assert resolve_dataset("MUTAG", tmp_path) == resolve_dataset(" tu:name=MUTAG ", tmp_path)
    assert resolve_dataset("tu:name=MINE", tmp_path).label == "MINE"
    assert resolve_dataset("synthetic:nodes=30,degree=6", tmp_path).label == "synthetic:degree=6"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("proteins", "Did you mean: PROTEINS"),
        ("mutagg", "Did you mean: MUTAG"),
        ("tu", "tu:name=MUTAG"),
        ("tu:name=../../etc", "cannot be the name of a dataset"),
        ("MUTAG:nodes=3", "MUTAG has no setting 'nodes'"),
        ("PROTEINS:name=DD", "fixed by the name"),
        ("synthetic:nodes=4", "nodes=4 is not valid"),
        ("digits:treshold=3", "Did you mean: threshold"),
    ],
)
def test_mistakes_are_explained(spec: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        resolve_dataset(spec, tmp_path)


def test_a_set_that_is_missing_names_both_remedies_and_downloads_nothing(tmp_path: Path) -> None:
    for name in ("PROTEINS", "MUTAG", "tu:name=UNHEARD"):
        with pytest.raises(UserError, match=r"bench data fetch .* `bench data import PATH`") as caught:
            load_dataset(name, tmp_path / "none")
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "none").exists()


def test_information_for_planning(tiny_root: Path) -> None:
    tiny = cheap_info("TINY", tiny_root)
    assert (tiny.present, tiny.has_features, tiny.graphs, tiny.classes) == (True, True, 40, 2)
    absent = cheap_info("IMDB-MULTI", tiny_root)
    assert (absent.present, absent.has_features, absent.graphs) == (False, False, None)
    assert cheap_info("MUTAG", tiny_root).has_features is None


def test_a_tu_set_is_read(tiny_root: Path) -> None:
    data = load_dataset("TINY", tiny_root)
    assert data.name == "TINY" and data.num_classes == 2 and data.has_features
    assert data.labels.tolist() == [0, 1] * 20 == [int(g.y) for g in data.graphs]
    assert is_clean(data)
    assert data.graphs[0].x.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert [g.num_edges for g in data.graphs[:2]] == [6, 4]
    assert load_dataset("tu:name=TINY", tiny_root) is data


def test_directed_doubled_and_looping_edges_are_put_right(
    tmp_data_root: Path, write_archive: Callable[..., Path]
) -> None:
    files = {
        "A": "1, 2\n1, 2\n2, 3\n3, 3\n4, 5\n",
        "graph_indicator": "1\n1\n1\n2\n2\n3\n",
        "graph_labels": "7\n3\n7",  # no newline at the end, and the last graph has no edge
    }
    import_path(write_archive("ODD", files), tmp_data_root)
    data = load_dataset("ODD", tmp_data_root)
    assert is_clean(data) and not data.has_features
    assert data.labels.tolist() == [1, 0, 1]
    assert [g.num_nodes for g in data.graphs] == [3, 2, 1]
    assert data.graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.graphs[2].edge_index.shape == (2, 0)


def test_any_datasets_graphs_are_cleaned_on_a_copy() -> None:
    graph = Data(edge_index=torch.tensor([[0, 0, 1, 1], [0, 1, 2, 2]]), y=torch.tensor(9), num_nodes=4)
    other = Data(edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor(2), num_nodes=1)
    data = GraphSet.from_graphs("OWN", [graph, other])
    assert is_clean(data) and data.labels.tolist() == [1, 0]
    assert data.graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]] and data.graphs[0].num_nodes == 4
    assert graph.edge_index.shape == (2, 4) and int(graph.y) == 9


def test_another_version_of_the_data_has_another_fingerprint(
    tmp_data_root: Path, write_archive: Callable[..., Path], tiny_files: Callable[..., dict[str, str]]
) -> None:
    files = tiny_files()
    seen = []
    for change in ({}, {"graph_labels": files["graph_labels"].replace("-1", "1", 1)}, {"A": files["A"] + "4, 6\n"}):
        import_path(write_archive("TINY", {**files, **change}), tmp_data_root)
        seen.append(load_dataset("TINY", tmp_data_root).fingerprint)
    import_path(write_archive("TINY", tiny_files(node_labels=False)), tmp_data_root)
    seen.append(load_dataset("TINY", tmp_data_root).fingerprint)
    assert len(set(seen)) == 4


def test_an_interrupted_or_outdated_reading_is_made_anew(tiny_root: Path) -> None:
    from bench.datasets.tu import read_graphs

    folder = tiny_root / "tu" / "TINY"
    (folder / "processed" / "pre_filter.pt").unlink()  # as if killed while PyG wrote its data
    (folder / "processed" / "data.pt").write_bytes(b"half")
    assert len(read_graphs(folder)) == 40
    labels = folder / "raw" / "TINY_graph_labels.txt"
    labels.write_text(labels.read_text().replace("-1", "1", 1))
    assert [int(g.y) for g in read_graphs(folder)[:3]] == [1, 1, 0]


def test_files_put_there_by_hand_are_checked(tiny_root: Path) -> None:
    from bench.datasets.loading import forget_loaded

    forget_loaded()
    with (tiny_root / "tu/TINY/raw/TINY_A.txt").open("a") as edges:
        edges.write("1, 121\n")
    with pytest.raises(UserError, match=r"TINY_A\.txt: an edge names a node outside 1\.\.120"):
        load_dataset("TINY", tiny_root)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_data_root_that_cannot_be_written_to_is_read(
    number: int, tiny_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.datasets.tu import read_graphs

    def refuse(path: object) -> None:
        raise OSError(number, "read only")

    folder = tiny_root / "tu" / "TINY"
    shutil.rmtree(folder / "processed")
    monkeypatch.setattr("filelock.FileLock", refuse)
    assert len(read_graphs(folder)) == 40
    assert not (folder / "processed").exists()


def test_digits_are_graphs_of_lit_pixels(tmp_path: Path) -> None:
    data = load_dataset("digits", tmp_path)
    assert len(data.graphs) == 1797 and data.num_classes == 10 and data.has_features
    assert is_clean(data)
    assert min(g.num_nodes for g in data.graphs) >= 5
    features = torch.cat([g.x for g in data.graphs])
    assert features.shape[1] == 3 and features.min() == 0 and features.max() == 1
    assert features[:, 0].min() == 4 / 16
    graph = data.graphs[0]
    steps = (graph.x[graph.edge_index[0], 1:] - graph.x[graph.edge_index[1], 1:]).abs().max(dim=1).values
    assert torch.allclose(steps, torch.full_like(steps, 1 / 7))
    assert load_dataset("digits:threshold=8", tmp_path).fingerprint != data.fingerprint


@pytest.mark.parametrize(("nodes", "degree"), [(30, 4), (8, 2), (41, 10)])
def test_synthetic_graphs_differ_in_structure_alone(nodes: int, degree: int, tmp_path: Path) -> None:
    data = load_dataset(f"synthetic:graphs=80,nodes={nodes},degree={degree}", tmp_path)
    assert len(data.graphs) == 80 and data.num_classes == len(FAMILIES) == 4 and not data.has_features
    assert is_clean(data)
    assert {g.num_nodes for g in data.graphs} == {nodes}
    assert {g.num_edges for g in data.graphs} == {nodes * degree}
    assert np.bincount(data.labels).tolist() == [20] * 4


def test_synthetic_families_have_their_marks(tmp_path: Path) -> None:
    data = load_dataset("synthetic", tmp_path)
    spread, closed = np.zeros(4), np.zeros(4)
    for graph, label in zip(data.graphs, data.labels, strict=True):
        adjacency = torch.zeros(30, 30)
        adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
        spread[label] += float(adjacency.sum(0).var())
        closed[label] += float(torch.trace(adjacency @ adjacency @ adjacency))
    names = list(FAMILIES)
    assert names[int(spread.argmax())] == "preferential" and names[int(spread.argmin())] == "small-world"
    assert names[int(closed.argmax())] == "small-world" and closed[3] > closed[0]


def test_synthetic_graphs_come_from_their_seed(tmp_path: Path) -> None:
    def edges(spec: str) -> list[list[int]]:
        return load_dataset(spec, tmp_path).graphs[5].edge_index.tolist()

    assert edges("synthetic") == edges("synthetic:graphs=200")  # more graphs move none of the others
    assert edges("synthetic") != edges("synthetic:seed=1")


@pytest.mark.parametrize("spec", ["synthetic:degree=3", "synthetic:nodes=20,degree=8"])
def test_synthetic_settings_that_do_not_fit_are_refused(spec: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="use an even degree of at most a quarter of the nodes"):
        load_dataset(spec, tmp_path)


def test_every_registered_dataset_has_a_summary() -> None:
    assert all(entry.summary for entry in DATASETS.entries().values())
