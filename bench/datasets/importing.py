"""Import data into the data root: atomically, and recognizing data that is already there."""

from __future__ import annotations

import filecmp
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.datasets.archives import copy_folder, find_tu_folder, unpack
from bench.datasets.loading import cheap_info, forget_loaded
from bench.datasets.notes import raw_files
from bench.datasets.paths import tu_folder
from bench.datasets.split_files import LARGEST_FILE, SUFFIX, dataset_of_file, read_folds, split_file
from bench.datasets.tu import read_graphs
from bench.datasets.tu_files import validate
from bench.registry import UserError
from bench.temporary import scratch_folder

# sha256 of the files of Errica et al.: diningphil/gnn-comparison, folder data_splits.
CHECKSUMS = {
    ("CHEMICAL", "DD"): "3acb1dbb1c7d52d019be2996ba52b9e1e7e9410eb5a84aad2eff766392aba8a8",
    ("CHEMICAL", "NCI1"): "1c961b85422fb557edade036f614869bb996323efd21dbfa4b40ff1b80304924",
    ("CHEMICAL", "PROTEINS"): "785c4225474a5467427b704e424602e6a4b88ebd3463cf152d3ec82d2422cd6a",
    ("COLLABORATIVE_1", "IMDB-BINARY"): "9a5d452b422121d071fd5f84ecceabbe49e61dfcc0a0585698270627bf741d76",
    ("COLLABORATIVE_1", "IMDB-MULTI"): "d2f2f0fbcc4ca1eae97d78c184ab4207133ec873c4640a05bfa92f915c4298a6",
    ("COLLABORATIVE_1", "REDDIT-MULTI-5K"): "b063ce3d340cd458bc611085eaa7ddf7ee4580849a5541e3ec8fc0119dd285b3",
    ("COLLABORATIVE_DEGREE", "IMDB-BINARY"): "da73a722e88ee867b67e10efc2791c15fed0eab280c95269b9d814d145398d9a",
    ("COLLABORATIVE_DEGREE", "IMDB-MULTI"): "f4a59c65f15096a9449e4e1c4bba6ce4e364bd025b05486d5183b63ead1ccb92",
    ("COLLABORATIVE_DEGREE", "REDDIT-MULTI-5K"): "b59b740df2acd7e8518ee56a8c298810ae0bfca7a8da04077bc549b8ba7ba583",
}
_STAGING = ".incoming"
_DEEPEST = 4  # how many levels below a given folder are searched

Outcome = Literal["new", "unchanged", "replaced"]


@dataclass(frozen=True)
class Brought:
    """The outcome for one dataset or split file that was fetched or imported."""

    what: str
    outcome: Outcome
    detail: str


def import_path(path: Path, root: Path, family: str | None = None) -> Brought:
    """Import one archive, one folder in TU layout, or one split file."""
    if path.is_dir():
        return bring_dataset(root, lambda staging: copy_folder(path, staging))
    if path.name.endswith(SUFFIX):
        return bring_splits(path, root, family)
    return bring_dataset(root, lambda staging: unpack(path, staging))


def find_items(path: Path) -> list[Path]:
    """Everything that can be imported at or below a path; datasets first, because splits are checked against them."""
    if not path.exists():
        raise UserError(
            f"{path} does not exist; give a list of graphs (.pt), an archive, a folder in TU layout or a split file"
        )
    if path.is_file():
        if path.suffix.lower() not in (".zip", ".pt", ".pth") and not path.name.endswith(SUFFIX):
            raise UserError(
                f"{path} is neither a .zip archive, a .pt file of graphs nor a NAME{SUFFIX}; give one or a folder"
            )
        return [path]
    found = list(_walk(path, _DEEPEST))
    if not found:
        raise UserError(f"{path} contains no archive, no folder in TU layout and no NAME{SUFFIX}; give another folder")
    return sorted(found, key=lambda item: (item.name.endswith(SUFFIX), str(item)))


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    if find_tu_folder(folder):
        yield folder
        return
    for child in sorted(folder.iterdir()):
        if child.name.startswith("."):
            continue
        if child.is_dir():
            if depth:
                yield from _walk(child, depth - 1)
        elif child.suffix.lower() == ".zip" or child.name.endswith(SUFFIX):
            yield child


def bring_dataset(root: Path, stage: Callable[[Path], str], expected: str | None = None) -> Brought:
    """Let `stage` write NAME/raw into a temporary folder, check it, have PyG read it, and move it into place."""
    from filelock import FileLock

    with _staging(root / "tu") as staging:
        name = stage(staging)
        if expected is not None and name != expected:
            raise UserError(f"the archive contains {name} instead of {expected}; nothing was extracted")
        staged, place = staging / name, tu_folder(root, name)
        validate(staged / "raw", name)
        with FileLock(place.parent / f".{name}.lock"):
            if _same_files(staged, place):
                return Brought(name, "unchanged", "the same files are already there")
            graphs = len(read_graphs(staged))
            outcome: Outcome = "replaced" if place.exists() else "new"
            if place.exists():
                os.rename(place, staging / "old")
            os.rename(staged, place)
    forget_loaded()
    return Brought(name, outcome, f"{graphs} graphs")


def bring_splits(path: Path, root: Path, family: str | None = None) -> Brought:
    """Check a split file and move it into place; the family is given, known by content, or the name of the folder."""
    dataset = dataset_of_file(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UserError(f"{path} is larger than {LARGEST_FILE} bytes, too large for a split file; get another copy")
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}); check the path") from error
    digest = hashlib.sha256(content).hexdigest()
    known = next((f for (f, d), value in CHECKSUMS.items() if value == digest and d == dataset), None)
    family = family or known or path.absolute().parent.name
    pinned = CHECKSUMS.get((family, dataset))
    if pinned is not None and digest != pinned:
        raise UserError(
            f"{path} is not the published {family} file of {dataset} (its sha256 is {digest[:12]}...); "
            "get another copy, or give your own splits a name with --family"
        )
    place = split_file(root, family, dataset)
    size = cheap_info(dataset, root).graphs
    count = len(read_folds(path, dataset, size))
    folds = "1 fold" if count == 1 else f"{count} folds"
    detail = f"{folds} of {size} graphs" if size else f"{folds}; the dataset itself is not there yet"
    what = f"{dataset} splits {family}"
    if place.is_file() and place.read_bytes() == content:
        return Brought(what, "unchanged", "the same file is already there")
    outcome: Outcome = "replaced" if place.is_file() else "new"
    place.parent.mkdir(parents=True, exist_ok=True)
    with _staging(place.parent.parent) as staging:
        (staging / place.name).write_bytes(content)
        os.replace(staging / place.name, place)
    return Brought(what, outcome, detail)


def _same_files(one: Path, other: Path) -> bool:
    """Whether two folders of a dataset contain the same text, byte for byte."""
    first, second = raw_files(one), raw_files(other)
    return first.keys() == second.keys() and all(
        filecmp.cmp(first[name], second[name], shallow=False) for name in first
    )


@contextmanager
def _staging(parent: Path) -> Iterator[Path]:
    """A temporary folder on the same disk as the destination, removed afterwards in any case."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(_STAGING, parent) as staging:
            yield staging
    except OSError as error:
        raise UserError(f"cannot write to the data root at {parent} ({error}); choose another with --data") from error
