from __future__ import annotations

import shutil
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.datasets import archives, load_dataset
from bench.datasets.importing import find_items, import_path
from bench.protocol.splits import load_splits, resolve_splits, stratified_splits
from bench.registry import UserError

WriteArchive = Callable[..., Path]
TinyFiles = Callable[..., dict[str, str]]


def left_behind(root: Path) -> list[str]:
    """Every file in a data root but locks, which hold nothing."""
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.suffix != ".lock")


def splits_text(dataset: str, size: int) -> str:
    import json

    own = stratified_splits(dataset, [n % 2 for n in range(size)])
    folds = [
        {
            "test": own.test(f).tolist(),
            "model_selection": [
                {"train": own.development(f).train.tolist(), "validation": own.development(f).validation.tolist()}
            ],
        }
        for f in range(10)
    ]
    return json.dumps(folds)


def test_an_archive_is_taken_in_once(tmp_data_root: Path, write_archive: WriteArchive) -> None:
    archive = write_archive(extra={"TINY/README.txt": "hello", "TINY/TINY_node_attributes.txt": "0.5\n" * 120})
    first, second = import_path(archive, tmp_data_root), import_path(archive, tmp_data_root)
    assert (first.what, first.outcome, first.detail) == ("TINY", "new", "40 graphs")
    assert second.outcome == "unchanged"
    raw = [f"tu/TINY/raw/TINY_{kind}.txt" for kind in ("A", "graph_indicator", "graph_labels", "node_labels")]
    assert [name for name in left_behind(tmp_data_root) if "processed" not in name] == raw
    assert len(load_dataset("TINY", tmp_data_root).graphs) == 40


def test_other_content_replaces_what_was_loaded(
    tmp_data_root: Path, write_archive: WriteArchive, tiny_files: TinyFiles
) -> None:
    import_path(write_archive(), tmp_data_root)
    assert load_dataset("TINY", tmp_data_root).has_features
    assert import_path(write_archive(files=tiny_files(20, node_labels=False)), tmp_data_root).outcome == "replaced"
    data = load_dataset("TINY", tmp_data_root)
    assert len(data.graphs) == 20 and not data.has_features


@pytest.mark.parametrize("below", ["", "raw"])
def test_folders_in_tu_layout_are_taken_in(
    below: str, tmp_path: Path, tmp_data_root: Path, tiny_files: TinyFiles
) -> None:
    folder = tmp_path / "somewhere" / below
    folder.mkdir(parents=True)
    for kind, text in tiny_files().items():
        (folder / f"MINE_{kind}.txt").write_text(text.replace("\n", "\r\n"), newline="")
    assert import_path(tmp_path / "somewhere", tmp_data_root).what == "MINE"
    assert len(load_dataset("MINE", tmp_data_root).graphs) == 40


DAMAGED = {
    "labels for another number of graphs": ({"graph_labels": "1\n2\n"}, "2 labels for 40 graphs"),
    "one class": ({"graph_labels": "1\n" * 40}, "same class"),
    "text": ({"graph_labels": "1\n" * 39 + "one\n"}, "not a table of whole numbers"),
    "fractions": ({"graph_labels": "1.0\n" * 20 + "2.5\n" * 20}, "not a table of whole numbers"),
    "edge out of range": ({"A": "1, 2\n2, 121\n"}, r"outside 1\.\.120"),
    "edge to node zero": ({"A": "0, 1\n"}, r"outside 1\.\.120"),
    "edge between graphs": ({"A": "1, 2\n3, 4\n"}, "1 edges join nodes of different graphs"),
    "three columns": ({"A": "1, 2, 3\n"}, "3 columns instead of 2"),
    "ragged": ({"A": "1, 2\n3\n"}, "not a table of whole numbers"),
    "empty": ({"A": "\n"}, "it is empty"),
    "empty line": ({"A": "1, 2\n\n2, 3\n"}, "empty lines"),
    "unordered": ({"graph_indicator": "2\n1\n" + "3\n" * 118}, "in order"),
    "gap": ({"graph_indicator": "1\n" * 60 + "3\n" * 60}, "without gaps"),
    "node labels": ({"node_labels": "1\n2\n"}, "2 lines for 120 nodes"),
    "wild node labels": ({"node_labels": "1\n" * 119 + "99999999999\n"}, "span more than"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_files_that_do_not_agree_leave_nothing_behind(
    case: str, tmp_data_root: Path, write_archive: WriteArchive, tiny_files: TinyFiles
) -> None:
    change, reason = DAMAGED[case]
    with pytest.raises(UserError, match=reason) as caught:
        import_path(write_archive(files={**tiny_files(), **change}), tmp_data_root)
    assert "\n" not in str(caught.value)
    assert left_behind(tmp_data_root) == []


def test_bytes_that_are_not_text_are_refused(tmp_path: Path, tmp_data_root: Path, tiny_files: TinyFiles) -> None:
    folder = tmp_path / "BAD"
    folder.mkdir()
    for kind, text in tiny_files().items():
        (folder / f"BAD_{kind}.txt").write_text(text)
    (folder / "BAD_graph_labels.txt").write_bytes(b"1\n\xff\xfe\n")
    with pytest.raises(UserError, match="not UTF-8"):
        import_path(folder, tmp_data_root)
    assert left_behind(tmp_data_root) == []


def test_a_set_without_labels_is_refused(
    tmp_data_root: Path, write_archive: WriteArchive, tiny_files: TinyFiles
) -> None:
    files = tiny_files()
    del files["graph_labels"]
    with pytest.raises(UserError, match=r"TINY_graph_labels\.txt missing"):
        import_path(write_archive(files=files), tmp_data_root)


@pytest.mark.parametrize(
    "member", ["../evil.txt", "/evil.txt", "TINY/../../evil.txt", "TINY\\..\\evil.txt", "C:/evil.txt"]
)
def test_paths_that_lead_outside_are_refused(
    member: str, tmp_path: Path, tmp_data_root: Path, write_archive: WriteArchive
) -> None:
    with pytest.raises(UserError, match="unsafe path"):
        import_path(write_archive(extra={member: "boo"}), tmp_data_root)
    assert left_behind(tmp_data_root) == [] and not list(tmp_path.rglob("evil*"))


def test_links_are_refused(tmp_data_root: Path, write_archive: WriteArchive) -> None:
    archive = write_archive()
    link = zipfile.ZipInfo("TINY/TINY_graph_attributes.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr(link, "/etc/passwd")
    with pytest.raises(UserError, match="a link or device"):
        import_path(archive, tmp_data_root)
    assert left_behind(tmp_data_root) == []


def test_a_bomb_is_not_unpacked(tmp_data_root: Path, write_archive: WriteArchive, tiny_files: TinyFiles) -> None:
    archive = write_archive(files={**tiny_files(), "A": "1, 2\n" * 2**22})
    with pytest.raises(UserError, match="grow more than 200 times"):
        import_path(archive, tmp_data_root)
    assert left_behind(tmp_data_root) == []


def test_more_than_is_allowed_is_not_taken(
    tmp_path: Path, tmp_data_root: Path, write_archive: WriteArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = write_archive()
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "unpacked")
    monkeypatch.setattr(archives, "LARGEST", 100)
    for source in (archive, tmp_path / "unpacked" / "TINY"):
        with pytest.raises(UserError, match="more than the limit of 100"):
            import_path(source, tmp_data_root)


def test_damaged_and_foreign_archives_are_refused(
    tmp_path: Path, tmp_data_root: Path, write_archive: WriteArchive
) -> None:
    whole = write_archive()
    cut, flipped, foreign = tmp_path / "cut.zip", tmp_path / "flipped.zip", tmp_path / "foreign.zip"
    content = whole.read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    flipped.write_bytes(content[:60] + bytes([content[60] ^ 0xFF]) + content[61:])
    with zipfile.ZipFile(foreign, "w") as opened:
        opened.writestr("holiday/photo.txt", "sun")
    for path, reason in (
        (cut, "not a complete zip"),
        (flipped, "not a complete zip"),
        (foreign, "not an archive of one TU dataset"),
    ):
        with pytest.raises(UserError, match=reason):
            import_path(path, tmp_data_root)
    assert left_behind(tmp_data_root) == []


def test_a_failed_import_leaves_the_old_data_alone(
    tiny_root: Path, write_archive: WriteArchive, tiny_files: TinyFiles
) -> None:
    before = left_behind(tiny_root)
    with pytest.raises(UserError):
        import_path(write_archive(files={**tiny_files(), "A": "1, 999\n"}), tiny_root)
    assert left_behind(tiny_root) == before
    assert len(load_dataset("TINY", tiny_root).graphs) == 40


def test_split_files_are_taken_in(tmp_path: Path, tiny_root: Path) -> None:
    path = tmp_path / "MINE" / "TINY_splits.json"
    path.parent.mkdir()
    path.write_text(splits_text("TINY", 40))
    assert import_path(path, tiny_root).what == "TINY splits MINE"
    assert import_path(path, tiny_root).outcome == "unchanged"
    assert import_path(path, tiny_root, family="OTHER").what == "TINY splits OTHER"
    labels = load_dataset("TINY", tiny_root).labels
    assert load_splits("TINY", resolve_splits("TINY", "MINE", tiny_root), labels, tiny_root).num_folds == 10


@pytest.mark.parametrize(
    ("folder", "name", "size", "reason"),
    [
        ("MINE", "TINY", 44, r"does not belong to this TINY \(40 graphs\)"),
        ("CHEMICAL", "NCI1", 40, "not the published CHEMICAL file of NCI1"),
        ("MINE", "NOWHERE", 40, "unknown dataset 'NOWHERE'"),
        ("odd name", "TINY", 40, "cannot be the name of a split family"),
    ],
)
def test_splits_of_something_else_leave_nothing_behind(
    folder: str, name: str, size: int, reason: str, tmp_path: Path, tiny_root: Path
) -> None:
    path = tmp_path / folder / f"{name}_splits.json"
    path.parent.mkdir()
    path.write_text(splits_text(name, size))
    with pytest.raises(UserError, match=reason):
        import_path(path, tiny_root)
    assert not (tiny_root / "splits").exists()


def test_published_splits_are_known_by_their_content(data_root: Path, tmp_path: Path, tmp_data_root: Path) -> None:
    shutil.copy(data_root / "splits/CHEMICAL/PROTEINS_full_splits.json", tmp_path)
    assert import_path(tmp_path / "PROTEINS_full_splits.json", tmp_data_root).what == "PROTEINS splits CHEMICAL"
    assert resolve_splits("PROTEINS", "auto", tmp_data_root) == "CHEMICAL"


def test_a_folder_is_searched_datasets_first(
    tmp_path: Path, write_archive: WriteArchive, tiny_files: TinyFiles
) -> None:
    top = tmp_path / "download"
    (top / "a" / "MINE").mkdir(parents=True)
    (top / "z" / "SET" / "raw").mkdir(parents=True)
    (top / "a" / "MINE" / "TINY_splits.json").write_text("[]")
    (top / "z" / "SET" / "raw" / "SET_A.txt").write_text("1, 2\n")
    shutil.copy(write_archive(), top / "z")
    (top / "README.md").write_text("notes")
    found = [str(item.relative_to(top)) for item in find_items(top)]
    assert found == ["z/SET", "z/TINY.zip", "a/MINE/TINY_splits.json"]


def test_nothing_to_import_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("")
    for name, reason in (("empty", "contains no archive"), ("absent", "does not exist"), ("notes.txt", "neither")):
        with pytest.raises(UserError, match=reason):
            find_items(tmp_path / name)
