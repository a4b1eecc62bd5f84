"""Split files in the layout of Errica et al. (2020): their paths, and reading and checking their folds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.datasets.paths import splits_folder
from bench.registry import UserError

FOLDS = 10
# Errica et al. (2020): the first family is the default for a dataset.
PUBLISHED = {
    "PROTEINS": ("CHEMICAL",),
    "NCI1": ("CHEMICAL",),
    "DD": ("CHEMICAL",),
    "IMDB-BINARY": ("COLLABORATIVE_1", "COLLABORATIVE_DEGREE"),
    "IMDB-MULTI": ("COLLABORATIVE_1", "COLLABORATIVE_DEGREE"),
    "REDDIT-MULTI-5K": ("COLLABORATIVE_1", "COLLABORATIVE_DEGREE"),
}
_FILE_STEMS = {"PROTEINS": "PROTEINS_full"}  # same graphs, same order
SUFFIX = "_splits.json"
LARGEST_FILE = 2**26  # bytes; the largest published file has less than a hundredth of this

Indices = npt.NDArray[np.int64]
Parts = tuple[Indices, Indices, Indices]  # training, validation, test


def split_file(root: Path, family: str, dataset: str) -> Path:
    """The path of a dataset's split file of this family."""
    return splits_folder(root, family) / f"{_FILE_STEMS.get(dataset, dataset)}{SUFFIX}"


def dataset_of_file(path: Path) -> str:
    """The dataset of a split file, by its name."""
    stem = path.name.removesuffix(SUFFIX)
    return next((name for name, other in _FILE_STEMS.items() if other == stem), stem)


def families_at_hand(dataset: str, root: Path) -> list[str]:
    """The split families whose file for this dataset is in the data root."""
    folders = sorted((root / "splits").glob("*")) if ":" not in dataset else []
    return [folder.name for folder in folders if split_file(root, folder.name, dataset).is_file()]


def read_folds(path: Path, dataset: str, size: int | None) -> list[Parts]:
    """Training, validation and test part of each fold, checked; `size` None infers the size from the file."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
        outer = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a readable split file: {error}; fetch or import it again") from error
    try:
        parts = [
            (
                _indices(f["model_selection"][0]["train"]),
                _indices(f["model_selection"][0]["validation"]),
                _indices(f["test"]),
            )
            for f in outer
        ]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{path} is not in the layout of a split file ({type(error).__name__}: {error}); each of its {FOLDS} folds "
            '(or the only one) is {"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}'
        ) from error
    if len(parts) not in (1, FOLDS):
        raise UserError(f"{path} has {len(parts)} folds; it must have {FOLDS} or one; fetch or import it again")
    count = sum(len(p) for p in parts[0]) if size is None else size
    for number, (train, validation, test) in enumerate(parts):
        problem = parts_problem(train, validation, test, count)
        if problem:
            raise UserError(f"{path}, fold {number}: {problem}; it does not belong to this {dataset} ({count} graphs)")
    if len(parts) > 1 and not np.array_equal(np.sort(np.concatenate([test for _, _, test in parts])), np.arange(count)):
        raise UserError(f"{path}: the test parts do not contain each of the {count} graphs of {dataset} exactly once")
    return parts


def _indices(values: Any) -> Indices:
    if not isinstance(values, list) or not all(type(v) is int for v in values):
        raise TypeError("a part is a list of whole numbers")
    return np.array(values, dtype=np.int64)


def parts_problem(train: Indices, validation: Indices, test: Indices, count: int, whole: bool = True) -> str | None:
    """What is wrong with the parts of one fold, if anything; unless `whole`, some graphs may be in no part."""
    named = {"train": train, "validation": validation, "test": test}
    for name, part in named.items():
        if not len(part):
            return f"its {name} part is empty"
        if part.min() < 0 or part.max() >= count:
            return f"its {name} part has an index outside 0..{count - 1}"
        if len(np.unique(part)) != len(part):
            return f"its {name} part names a graph twice"
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        shared = np.intersect1d(named[one], named[other])
        if len(shared):
            return f"its {one} and {other} parts share {len(shared)} graphs"
    total = sum(len(part) for part in named.values())
    return None if total == count or not whole else f"its parts hold {total} of {count} graphs"
