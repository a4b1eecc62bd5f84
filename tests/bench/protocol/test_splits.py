from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.datasets import load_dataset
from bench.datasets.split_files import LARGEST_FILE, PUBLISHED, dataset_of_file, split_file
from bench.protocol.splits import (
    STRATIFIED,
    DevelopmentFold,
    DevelopmentSplits,
    load_splits,
    read_splits,
    resolve_splits,
    stratified_splits,
)
from bench.registry import UserError

LABELS = np.arange(40) % 2


def as_json(labels: np.ndarray = LABELS) -> list[dict[str, Any]]:
    """Valid folds in Errica et al.'s layout."""
    own = stratified_splits("TINY", labels)
    folds = []
    for fold in range(10):
        part = own.development(fold)
        inner = {"train": part.train.tolist(), "validation": part.validation.tolist()}
        folds.append({"test": own.test(fold).tolist(), "model_selection": [inner]})
    return folds


def write(root: Path, folds: Any, family: str = "MINE", dataset: str = "TINY") -> Path:
    path = split_file(root, family, dataset)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(folds if isinstance(folds, str) else json.dumps(folds))
    return path


def test_a_file_is_read_as_it_is_written(tmp_path: Path) -> None:
    folds = as_json()
    write(tmp_path, folds)
    splits = load_splits("TINY", "MINE", LABELS, tmp_path)
    assert splits.num_folds == 10 and splits.family == "MINE"
    assert splits.test(3).tolist() == folds[3]["test"]
    assert splits.development(3).train.tolist() == folds[3]["model_selection"][0]["train"]
    assert splits.development(3).validation.tolist() == folds[3]["model_selection"][0]["validation"]


def move(folds: list[dict[str, Any]], source: str, target: str) -> None:
    """Let two parts of fold 2 share a graph, the sizes kept."""
    parts = {"test": folds[2]["test"], **folds[2]["model_selection"][0]}
    parts[target][0] = parts[source][0]


BROKEN: dict[str, tuple[Callable[[list[dict[str, Any]]], Any], str]] = {
    "train meets validation": (lambda f: move(f, "train", "validation"), "train and validation parts share 1"),
    "train meets test": (lambda f: move(f, "train", "test"), "train and test parts share 1"),
    "validation meets test": (lambda f: move(f, "validation", "test"), "validation and test parts share 1"),
    "out of range": (lambda f: f[2]["test"].__setitem__(0, 40), "outside 0..39"),
    "negative": (lambda f: f[2]["test"].__setitem__(0, -1), "outside 0..39"),
    "fraction": (lambda f: f[2]["test"].__setitem__(0, 1.0), "whole numbers"),
    "true": (lambda f: f[2]["test"].__setitem__(0, True), "whole numbers"),
    "text": (lambda f: f[2].__setitem__("test", "0123"), "whole numbers"),
    "huge": (lambda f: f[2]["test"].__setitem__(0, 10**30), "layout"),
    "graph missing": (lambda f: f[2]["model_selection"][0]["train"].pop(), "hold 39 of 40"),
    "twice": (lambda f: f[2]["test"].append(f[2]["test"][0]), "names a graph twice"),
    "empty part": (lambda f: f[2]["model_selection"][0].__setitem__("validation", []), "validation part is empty"),
    "nine folds": (lambda f: f.pop(), "9 folds; it must have 10"),
    "no test": (lambda f: f[2].pop("test"), "KeyError"),
    "same fold twice": (lambda f: f.__setitem__(1, f[0]), "exactly once"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    breakage, reason = BROKEN[case]
    folds = as_json()
    breakage(folds)
    write(tmp_path, folds)
    with pytest.raises(UserError, match=reason) as caught:
        load_splits("TINY", "MINE", LABELS, tmp_path)
    assert "\n" not in str(caught.value) and "TINY_splits.json" in str(caught.value)


def test_the_first_inner_split_counts_and_a_file_may_say_itself_how_many_graphs_there_are(tmp_path: Path) -> None:
    folds = as_json()
    other = {"train": [0], "validation": [1]}
    for fold in folds:
        fold["model_selection"].append(other)
    splits = read_splits(write(tmp_path, folds), "TINY", "MINE", None)
    for fold in range(10):
        assert splits.development(fold).train.tolist() == folds[fold]["model_selection"][0]["train"]
        assert splits.development(fold).validation.tolist() == folds[fold]["model_selection"][0]["validation"]
    del folds[0]["model_selection"][0]["train"][0]  # the first fold's word: 39 graphs
    with pytest.raises(UserError, match=r"fold [01]: .*\(39 graphs\)"):
        read_splits(write(tmp_path, folds), "TINY", "MINE", None)


def test_a_file_beyond_the_largest_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, as_json())
    assert 2**20 < LARGEST_FILE <= 2**28, "room for any dataset, and no more memory than a laptop has"
    monkeypatch.setattr("bench.datasets.split_files.LARGEST_FILE", path.stat().st_size)
    read_splits(path, "TINY", "MINE", 40)
    monkeypatch.setattr("bench.datasets.split_files.LARGEST_FILE", path.stat().st_size - 1)
    with pytest.raises(UserError, match="it is larger than"):
        read_splits(path, "TINY", "MINE", 40)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "{}", "null", '[{"test": []}]', "[" * 100_000])
def test_what_is_not_a_split_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"TINY_splits\.json"):
        read_splits(write(tmp_path, text), "TINY", "MINE", 40)


def test_a_file_of_a_dataset_of_another_size_is_refused(tmp_path: Path) -> None:
    write(tmp_path, as_json())
    with pytest.raises(UserError, match="does not belong to this TINY \\(50 graphs\\)"):
        load_splits("TINY", "MINE", np.arange(50) % 2, tmp_path)


def test_a_tuner_cannot_reach_a_test_index_and_nobody_can_edit_one() -> None:
    splits = stratified_splits("TINY", LABELS)
    development = splits.without_test()
    assert isinstance(development, DevelopmentSplits) and not hasattr(development, "test")
    assert {f.name for f in fields(DevelopmentFold)} == {"train", "validation"}
    test = set(splits.test(4).tolist())
    part = development.development(4)
    assert not test & {*part.train.tolist(), *part.validation.tolist()}
    with pytest.raises(ValueError):
        splits.test(4)[0] = 0


@pytest.mark.parametrize("fold", [-1, 10])
def test_a_fold_that_does_not_exist_is_an_error(fold: int) -> None:
    splits = stratified_splits("TINY", LABELS)
    for ask in (splits.test, splits.development, splits.without_test().development):
        with pytest.raises(UserError, match=f"fold {fold} does not exist"):
            ask(fold)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=20, max_size=150))
def test_own_folds_are_a_partition_even_of_odd_classes(values: list[int]) -> None:
    labels = np.unique(values, return_inverse=True)[1]
    splits = stratified_splits("ODD", labels)
    tested = np.concatenate([splits.test(fold) for fold in range(10)])
    assert sorted(tested.tolist()) == list(range(len(labels)))
    for fold in range(10):
        part, test = splits.development(fold), splits.test(fold)
        everything = np.concatenate([part.train, part.validation, test])
        assert sorted(everything.tolist()) == list(range(len(labels)))
        # a class that has graphs beside the test part is never missing from training
        assert set(labels[part.train]) >= set(labels[part.validation])
        for label, count in enumerate(np.bincount(labels)):
            assert abs((labels[test] == label).sum() - count / 10) < 1
    sizes = [len(splits.test(fold)) for fold in range(10)]
    assert max(sizes) - min(sizes) <= 1


def test_own_folds_hold_a_tenth_for_validation_and_depend_on_the_name_alone() -> None:
    labels = np.arange(1000) % 2
    one, again, other = (stratified_splits(name, labels) for name in ("A", "A", "B"))
    assert len(one.development(0).validation) == 90 and len(one.development(0).train) == 810
    assert np.bincount(labels[one.development(0).validation]).tolist() == [45, 45]
    assert np.array_equal(one.test(0), again.test(0)) and not np.array_equal(one.test(0), other.test(0))


def test_own_folds_are_the_same_on_every_machine_and_in_every_version() -> None:
    splits = stratified_splits("TINY", LABELS)
    assert splits.family == STRATIFIED
    assert [splits.test(fold).tolist() for fold in (0, 9)] == [[15, 22, 25, 28], [11, 24, 32, 37]]
    assert splits.development(0).validation.tolist() == [1, 14, 16, 31]
    again = load_splits("TINY", STRATIFIED, LABELS, Path("no-such-folder"))
    assert all(np.array_equal(again.test(fold), splits.test(fold)) for fold in range(10))


def test_a_class_of_two_beside_the_test_part_gives_one_to_validation_at_most() -> None:
    labels = np.array([0] * 33 + [1] * 2)
    splits = stratified_splits("PAIR", labels)
    both = [fold for fold in range(10) if not labels[splits.test(fold)].any()]
    held = [int(labels[splits.development(fold).validation].sum()) for fold in both]
    assert 1 in held and max(held) == 1, "the last graph of a class stays in training, the one before need not"
    alone = stratified_splits("ALONE", labels[:-1])
    assert sum(33 in alone.development(fold).train for fold in range(10)) == 9, "everywhere but in its test part"


def test_no_published_family_is_misspelled() -> None:
    families = {family for names in PUBLISHED.values() for family in names}
    assert families == {"CHEMICAL", "COLLABORATIVE_1", "COLLABORATIVE_DEGREE"}


def test_rare_classes_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bench"):
        for _ in range(2):
            stratified_splits("RARE", np.array([0] * 30 + [1] * 2))
            stratified_splits("ENOUGH", np.array([0] * 30 + [1] * 10))
    assert [r.getMessage() for r in caplog.records] == [
        "RARE: classes [1] have fewer than 10 graphs, so some test parts have none of them"
    ]


def test_too_few_graphs_for_ten_folds_is_an_error() -> None:
    with pytest.raises(UserError, match="12 graphs"):
        stratified_splits("FEW", np.arange(12) % 2)


def test_auto_takes_the_published_default_where_it_is_at_hand(tmp_path: Path) -> None:
    assert resolve_splits("IMDB-BINARY", "auto", tmp_path) == STRATIFIED
    write(tmp_path, as_json(), "COLLABORATIVE_DEGREE", "IMDB-BINARY")
    assert resolve_splits("IMDB-BINARY", "auto", tmp_path) == STRATIFIED  # never the other family in silence
    assert resolve_splits("IMDB-BINARY", "COLLABORATIVE_DEGREE", tmp_path) == "COLLABORATIVE_DEGREE"
    write(tmp_path, as_json(), "COLLABORATIVE_1", "IMDB-BINARY")
    assert resolve_splits("IMDB-BINARY", "auto", tmp_path) == "COLLABORATIVE_1"
    assert resolve_splits("IMDB-BINARY", "stratified", tmp_path) == STRATIFIED
    assert resolve_splits("synthetic:nodes=40", "auto", tmp_path) == STRATIFIED


def test_proteins_uses_the_file_of_proteins_full(tmp_path: Path) -> None:
    write(tmp_path, as_json(), "CHEMICAL", "PROTEINS")
    path = tmp_path / "splits/CHEMICAL/PROTEINS_full_splits.json"
    assert path.is_file()
    assert dataset_of_file(path) == "PROTEINS" and dataset_of_file(Path("DD_splits.json")) == "DD"
    assert resolve_splits("PROTEINS", "auto", tmp_path) == "CHEMICAL"


def test_a_family_that_is_not_there_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"bench data fetch NCI1.*bench data import"):
        resolve_splits("NCI1", "CHEMICAL", tmp_path)
    with pytest.raises(UserError, match="bench data fetch NCI1"):
        load_splits("NCI1", "CHEMICAL", LABELS, tmp_path)
    with pytest.raises(UserError, match="Did you mean: CHEMICAL"):
        resolve_splits("NCI1", "chemicals", tmp_path)
    with pytest.raises(UserError, match="unknown split family for digits 'CHEMICAL'"):
        resolve_splits("digits", "CHEMICAL", tmp_path)


@pytest.mark.parametrize(
    ("dataset", "family"), [(d, f) for d, families in PUBLISHED.items() for f in families if d != "REDDIT-MULTI-5K"]
)
def test_published_test_parts_are_stratified_to_within_a_graph(dataset: str, family: str, data_root: Path) -> None:
    labels = load_dataset(dataset, data_root).labels
    splits = load_splits(dataset, family, labels, data_root)
    for fold in range(10):
        share = np.bincount(labels[splits.test(fold)])
        assert np.all(np.abs(share - np.bincount(labels) / 10) <= 1)


def test_the_two_social_families_differ(data_root: Path) -> None:
    labels = load_dataset("IMDB-BINARY", data_root).labels
    one, other = (load_splits("IMDB-BINARY", f, labels, data_root) for f in PUBLISHED["IMDB-BINARY"])
    assert set(one.test(0).tolist()) != set(other.test(0).tolist())
