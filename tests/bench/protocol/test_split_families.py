"""Which split family is meant, and that folds are known by their content."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.datasets.split_files import split_file
from bench.protocol.splits import (
    STRATIFIED,
    check_splits,
    load_splits,
    resolve_splits,
    splits_fingerprint,
    stratified_splits,
)
from bench.registry import UserError

LABELS = np.arange(40) % 2


def as_json() -> list[dict[str, Any]]:
    """Valid folds in Errica et al.'s layout."""
    own, folds = stratified_splits("TINY", LABELS), []
    for fold in range(10):
        part = own.development(fold)
        inner = {"train": part.train.tolist(), "validation": part.validation.tolist()}
        folds.append({"test": own.test(fold).tolist(), "model_selection": [inner]})
    return folds


def write(root: Path, folds: Any, family: str = "MINE", dataset: str = "TINY") -> Path:
    path = split_file(root, family, dataset)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(folds))
    return path


def test_auto_takes_the_one_family_that_was_imported_for_a_dataset_without_a_published_one(tmp_path: Path) -> None:
    assert resolve_splits("MUTAG", "auto", tmp_path) == STRATIFIED
    write(tmp_path, as_json(), "MINE", "MUTAG")
    assert resolve_splits("MUTAG", "auto", tmp_path) == "MINE"
    assert resolve_splits("MUTAG", "stratified", tmp_path) == STRATIFIED
    assert resolve_splits("ENZYMES", "auto", tmp_path) == STRATIFIED, "a file of another dataset"
    write(tmp_path, as_json(), "OTHER", "MUTAG")
    with pytest.raises(UserError, match=r"MUTAG has 2 imported split families \(MINE, OTHER\); .*--splits"):
        resolve_splits("MUTAG", "auto", tmp_path)
    assert resolve_splits("MUTAG", "OTHER", tmp_path) == "OTHER"
    write(tmp_path, as_json(), "MINE", "PROTEINS")
    assert resolve_splits("PROTEINS", "auto", tmp_path) == STRATIFIED, "its published default is CHEMICAL"


def test_a_replaced_split_file_has_another_fingerprint_and_another_spacing_has_not(tmp_path: Path) -> None:
    folds = as_json()
    path = write(tmp_path, folds)
    before = splits_fingerprint("TINY", "MINE", tmp_path)
    assert before == splits_fingerprint("TINY", "MINE", tmp_path, LABELS)
    assert before == load_splits("TINY", "MINE", LABELS, tmp_path).fingerprint
    for fold in folds:
        fold["comment"] = "not read"
    path.write_text(json.dumps(folds, indent=3))
    assert splits_fingerprint("TINY", "MINE", tmp_path) == before
    folds[0], folds[1] = folds[1], folds[0]
    old = path.stat()
    path.write_text(json.dumps(folds, indent=3))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert path.stat().st_size == old.st_size
    assert splits_fingerprint("TINY", "MINE", tmp_path) != before
    ahead = time.time_ns() + 10**12  # a file whose times tell nothing is read each time, not remembered
    os.utime(path, ns=(ahead, ahead))
    assert splits_fingerprint("TINY", "MINE", tmp_path) == load_splits("TINY", "MINE", LABELS, tmp_path).fingerprint
    train = folds[0]["model_selection"][0]["train"]
    train[0], train[1] = train[1], train[0]  # the label draw depends on the order
    turned = splits_fingerprint("TINY", "MINE", tmp_path)
    path.write_text(json.dumps(folds))
    assert splits_fingerprint("TINY", "MINE", tmp_path) not in (before, turned)


def test_own_folds_have_a_version_and_a_missing_file_a_remedy(tmp_path: Path) -> None:
    assert splits_fingerprint("TINY", STRATIFIED, tmp_path) == "stratified-1"
    assert stratified_splits("TINY", LABELS).fingerprint == "stratified-1"
    with pytest.raises(UserError, match=r"splits CHEMICAL of NCI1 are not in .*bench data fetch NCI1"):
        splits_fingerprint("NCI1", "CHEMICAL", tmp_path)
    write(tmp_path, as_json())
    with pytest.raises(UserError, match=r"does not belong to this TINY \(44 graphs\)"):
        splits_fingerprint("TINY", "MINE", tmp_path, np.zeros(44))


def test_a_worker_refuses_folds_that_are_not_the_plans(tmp_path: Path) -> None:
    folds = as_json()
    write(tmp_path, folds)
    planned = splits_fingerprint("TINY", "MINE", tmp_path)
    check_splits(load_splits("TINY", "MINE", LABELS, tmp_path), planned, tmp_path)
    check_splits(load_splits("TINY", "MINE", LABELS, tmp_path), None, tmp_path)  # a plan that knows nothing of it
    folds.reverse()
    write(tmp_path, folds)
    with pytest.raises(UserError, match=rf"splits MINE of TINY .* \({planned}\); import the same split file"):
        check_splits(load_splits("TINY", "MINE", LABELS, tmp_path), planned, tmp_path)
