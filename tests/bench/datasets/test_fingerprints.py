"""What a fingerprint notices, and when the files on disk are read again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from bench.datasets import load_dataset
from bench.datasets.base import GraphSet
from bench.datasets.fingerprints import current_fingerprint, fingerprint, known_fingerprint
from bench.datasets.importing import import_path
from bench.datasets.legacy import legacy_fingerprint
from bench.datasets.loading import forget_loaded
from bench.datasets.notes import NOTE, kept_note
from bench.datasets.tu import read_graphs

ROOT = Path(__file__).parents[3]


def ring(label: int, order: tuple[int, ...] = (0, 1, 2, 3, 4), **more: Any) -> Data:
    """A ring through the nodes in this order: as many nodes and edges in any of them."""
    here = torch.tensor(order)
    return Data(edge_index=torch.stack([here, here.roll(-1)]), y=torch.tensor(label), num_nodes=5, **more)


def content(*graphs: Data) -> str:
    return GraphSet.from_graphs("OWN", [*graphs, ring(7)]).fingerprint


def test_rewired_edges_with_the_same_counts_are_other_data() -> None:
    plain, rewired = (
        GraphSet.from_graphs("OWN", [ring(0, order), ring(1)]) for order in ((0, 1, 2, 3, 4), (0, 2, 1, 3, 4))
    )
    assert legacy_fingerprint(plain) == legacy_fingerprint(rewired), "the fingerprint of old missed it"
    assert plain.fingerprint != rewired.fingerprint


def test_every_value_counts() -> None:
    x = torch.arange(10.0).view(5, 2)
    changed = x.clone()
    changed[4, 1] += 1e-5
    weight = torch.tensor([1.0, 2, 3, 4, 5])
    heavier = weight + torch.tensor([0, 0, 0, 0, 1.0])
    seen = [
        content(ring(0)),
        content(ring(9)),
        content(ring(0, edge_weight=weight)),
        content(ring(0, edge_weight=heavier)),
        *(GraphSet.from_graphs("OWN", [ring(0, x=each), ring(1, x=x)]).fingerprint for each in (x, changed)),
    ]
    assert len(set(seen)) == len(seen)


def test_the_form_in_memory_does_not_count() -> None:
    x = torch.arange(10.0).view(5, 2)
    one = ring(0, x=x)
    other = Data(
        edge_index=one.edge_index.flip(0)[:, [4, 2, 0, 1, 3]],
        x=x.double().t().contiguous().t(),  # column by column, in double precision
        y=torch.tensor([[0.0]]),
    )
    zeros = (ring(3, x=torch.full((5, 2), value)) for value in (0.0, -0.0))
    assert len({GraphSet.from_graphs("OWN", [each, ring(1, x=x)]).fingerprint for each in (one, other)}) == 1
    assert len({GraphSet.from_graphs("OWN", [each, ring(1, x=x)]).fingerprint for each in zeros}) == 1


def test_a_fingerprint_is_the_same_on_every_machine(tmp_path: Path) -> None:
    data = load_dataset("synthetic", tmp_path)
    assert (data.fingerprint, legacy_fingerprint(data)) == ("c7479b83ff072a25", "6eb8c3063c4f")


PUBLISHED_BY_0_1 = {
    "DD": "099bb61e81bc",
    "IMDB-BINARY": "45f0337a59b8",
    "IMDB-MULTI": "179a4394ddf8",
    "NCI1": "65acea31efe6",
    "PROTEINS": "72c05eaf1f87",
}


def test_the_fingerprint_of_old_is_that_of_the_published_results(data_root: Path) -> None:
    for name, published in PUBLISHED_BY_0_1.items():
        assert legacy_fingerprint(load_dataset(name, data_root)) == published


OWN = """
import torch
from torch_geometric.data import Data
from bench.datasets.base import Dataset, DatasetInfo

class Own(Dataset):
    def info(self, root):
        return DatasetInfo("own", True, False)
    def load(self, root):
        order = torch.tensor(ORDER)
        edges = torch.stack([order, order.roll(-1)])
        return [Data(edge_index=edges, y=torch.tensor(i % 2), num_nodes=5) for i in range(40)]
"""


@pytest.mark.parametrize("spec", ["own_set.graphs:Own", "own"])
def test_a_dataset_of_ones_own_by_path_or_entry_point(spec: str, tmp_path: Path) -> None:
    """Each in a process of its own: the same class with other edges."""
    meta, package = tmp_path / "own-1.dist-info", tmp_path / "own_set"
    meta.mkdir()
    package.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (meta / "entry_points.txt").write_text("[augbench.datasets]\nown = own_set.graphs:Own\n")
    program = (
        "import sys; from pathlib import Path; from bench.datasets.fingerprints import fingerprint\n"
        "print(fingerprint(sys.argv[1], Path('none')))"
    )
    seen = []
    for order in ([0, 1, 2, 3, 4], [0, 2, 1, 3, 4], [0, 1, 2, 3, 4]):
        (package / "graphs.py").write_text(OWN.replace("ORDER", str(order)), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, "-c", program, spec]
        seen.append(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)
    assert seen[0] != seen[1] and seen[0] == seen[2]


@pytest.fixture
def folder(tiny_root: Path) -> Path:
    forget_loaded()
    return tiny_root / "tu" / "TINY"


def test_a_fingerprint_is_noted_and_goes_with_the_processed_files(folder: Path, tiny_root: Path) -> None:
    assert known_fingerprint("TINY", tiny_root) is None
    loaded = load_dataset("TINY", tiny_root).fingerprint
    assert fingerprint("TINY", tiny_root) == known_fingerprint("TINY", tiny_root) == loaded
    shutil.rmtree(folder / "processed")
    assert known_fingerprint("TINY", tiny_root) is None


def test_built_in_data_has_a_fingerprint_without_a_note(tmp_path: Path) -> None:
    assert known_fingerprint("synthetic:nodes=40", tmp_path) is None
    assert fingerprint("synthetic", tmp_path) == load_dataset("synthetic", tmp_path).fingerprint


def test_times_alone_change_nothing(folder: Path, tiny_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint("TINY", tiny_root)
    for path in (*folder.glob("raw/*"), folder / "processed" / "data.pt"):
        path.touch()
    shutil.copytree(tiny_root, tiny_root.with_name("elsewhere"))
    monkeypatch.setattr("bench.datasets.fingerprints.load_dataset", None)  # it would fail
    assert known_fingerprint("TINY", tiny_root) == before
    assert known_fingerprint("TINY", tiny_root.with_name("elsewhere")) == before


def swapped(path: Path) -> str:
    """The text with its first two lines swapped: another class for two graphs, and not a byte more or less."""
    first, second, *rest = path.read_text().splitlines()
    assert first != second
    return "\n".join([second, first, *rest]) + "\n"


def edit(path: Path, text: str) -> None:
    path.write_text(text)


def edit_and_restore_the_times(path: Path, text: str) -> None:
    found = path.stat()
    path.write_text(text)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def replace_by_an_older_file(path: Path, text: str) -> None:
    other = path.with_name("other")
    other.write_text(text)
    os.utime(other, (1_000_000_000, 1_000_000_000))
    os.replace(other, path)


@pytest.mark.parametrize("change", [edit, edit_and_restore_the_times, replace_by_an_older_file])
def test_changed_text_is_read_again_whatever_its_times(
    change: Callable[[Path, str], None], folder: Path, tiny_root: Path
) -> None:
    before = fingerprint("TINY", tiny_root)
    labels = folder / "raw" / "TINY_graph_labels.txt"
    was = [int(graph.y) for graph in read_graphs(folder)[:2]]
    change(labels, swapped(labels) if labels.read_text().startswith(("1", "-1")) else "")
    assert known_fingerprint("TINY", tiny_root) is None
    assert [int(graph.y) for graph in read_graphs(folder)[:2]] == was[::-1]
    # The same process has the old graphs in memory, and must not give them out under the new files' name.
    after = fingerprint("TINY", tiny_root)
    assert after != before and after == load_dataset("TINY", tiny_root).fingerprint
    forget_loaded()
    assert load_dataset("TINY", tiny_root).fingerprint == after == known_fingerprint("TINY", tiny_root)


def test_what_is_current_is_that_of_changed_text_and_nothing_where_none_was_ever_read(
    folder: Path, tiny_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `bench status` and `bench why` go by: the results are stale as soon as the files are."""
    before = fingerprint("TINY", tiny_root)
    assert current_fingerprint("TINY", tiny_root) == before
    labels = folder / "raw" / "TINY_graph_labels.txt"
    labels.write_text(swapped(labels))
    after = current_fingerprint("TINY", tiny_root)
    assert after not in (None, before) and after == known_fingerprint("TINY", tiny_root)
    (folder / "processed" / NOTE).unlink()
    monkeypatch.setattr("bench.datasets.fingerprints.load_dataset", None)  # it would fail
    assert current_fingerprint("TINY", tiny_root) is None


def test_a_text_file_more_or_less_is_a_change(folder: Path, tiny_root: Path) -> None:
    before = fingerprint("TINY", tiny_root)
    (folder / "raw" / "TINY_node_labels.txt").unlink()
    assert known_fingerprint("TINY", tiny_root) is None
    assert fingerprint("TINY", tiny_root) != before


def test_a_reading_of_other_files_is_made_anew(
    folder: Path,
    tiny_root: Path,
    tmp_path: Path,
    write_archive: Callable[..., Path],
    tiny_files: Callable[..., dict[str, str]],
) -> None:
    """The processed files of another data root, with newer times: they were taken for those of this one."""
    before = fingerprint("TINY", tiny_root)
    other = tmp_path / "other"
    import_path(write_archive("TINY", {**tiny_files(), "A": tiny_files()["A"] + "4, 6\n"}), other)
    time.sleep(0.02)
    for name in ("data.pt", "pre_filter.pt", "pre_transform.pt"):
        shutil.copy(other / "tu/TINY/processed" / name, folder / "processed" / name)
        (folder / "processed" / name).touch()
    assert known_fingerprint("TINY", tiny_root) is None
    forget_loaded()
    assert load_dataset("TINY", tiny_root).fingerprint == before == fingerprint("TINY", tiny_root)
    shutil.rmtree(folder / "processed")
    shutil.copytree(other / "tu/TINY/processed", folder / "processed")  # the other root's note comes along
    assert known_fingerprint("TINY", tiny_root) is None
    assert fingerprint("TINY", tiny_root) == before


@pytest.mark.parametrize(
    "text",
    ["", "of another kind", "[]", "{}", '{"format": 1}', '{"format": 1, "raw": [], "data": {}}', "[" * 100_000],
)
def test_a_note_that_is_none_is_passed_over(text: str, folder: Path, tiny_root: Path) -> None:
    before = fingerprint("TINY", tiny_root)
    (folder / "processed" / NOTE).write_text(text, encoding="utf-8")
    assert kept_note(folder) is None
    forget_loaded()
    assert fingerprint("TINY", tiny_root) == before == known_fingerprint("TINY", tiny_root)


def test_a_note_of_another_version_of_pyg_does_not_count(folder: Path, tiny_root: Path) -> None:
    fingerprint("TINY", tiny_root)
    note = folder / "processed" / NOTE
    note.write_text(json.dumps({**json.loads(note.read_text()), "reader": "0.1"}))
    assert known_fingerprint("TINY", tiny_root) is None


def test_a_note_leaves_no_temporary_file(folder: Path, tiny_root: Path) -> None:
    fingerprint("TINY", tiny_root)
    assert not [path for path in (folder / "processed").iterdir() if path.name.startswith(".")]
    assert {path.name for path in folder.parent.iterdir()} <= {"TINY", ".TINY.lock"}
