"""No table mixes unlike cells in silence."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from bench.registry import UserError
from bench.results.frame import from_records
from tables.selection import Index, Pick, base_label, social_features
from tables.specs import Coordinate

SOCIAL = Coordinate("IMDB-BINARY", 10, "none")
CHEMICAL = Coordinate("PROTEINS", 10, "none")


def index(fake: ModuleType, *variants: tuple[Coordinate, dict[str, Any]]) -> Index:
    records = [r for place, changes in variants for r in fake.ledger([place], folds=2, repeats=1, **changes)]
    return Index(from_records(records))


def versions(fake: ModuleType, place: Coordinate, **changes: Any) -> dict[str, Any]:
    return {"versions": {**fake.cell(place).cell.versions, **changes}}


def test_two_features_for_one_place_are_an_error_that_names_them(fake: ModuleType) -> None:
    both = index(fake, (SOCIAL, {}), (SOCIAL, {"features": "degree"}), (CHEMICAL, {}))
    with pytest.raises(UserError, match=r"differ in features \(constant, degree\).*--features constant"):
        both.choose([SOCIAL], "default", Pick())
    chosen = both.choose([SOCIAL, CHEMICAL], "default", Pick({"features": "degree"}))
    assert both.cells[str(chosen[SOCIAL])]["features"] == "degree"
    assert chosen[CHEMICAL] is not None, "native features are beside the point of the pick"
    assert both.choose([SOCIAL], "default", Pick({"features": "degree-onehot"})) == {SOCIAL: None}
    assert social_features(both.results) == ["constant", "degree"]


def test_splits_are_picked_by_family_or_kind(fake: ModuleType) -> None:
    held = index(
        fake,
        (SOCIAL, {}),
        (SOCIAL, {"splits": "COLLABORATIVE_DEGREE"}),
        (CHEMICAL, {}),
        (CHEMICAL, {"splits": "stratified"}),
    )
    degree = held.choose([SOCIAL], "default", Pick({"splits": "COLLABORATIVE_DEGREE"}))
    assert held.cells[str(degree[SOCIAL])]["splits"] == "COLLABORATIVE_DEGREE"
    for value, expected in (("published", "CHEMICAL"), ("stratified", "stratified"), ("COLLABORATIVE_1", "CHEMICAL")):
        chosen = held.choose([CHEMICAL], "default", Pick({"splits": value}))
        assert held.cells[str(chosen[CHEMICAL])]["splits"] == expected
    assert held.choose([SOCIAL], "default", Pick({"splits": "stratified"})) == {SOCIAL: None}


def test_versions_of_an_engine_do_not_mix(fake: ModuleType) -> None:
    """Cells as runs write them: they name their engine, which is no plug-in with a label of its own."""
    old = versions(fake, SOCIAL, engine="fast", **{"engine-version": 1})
    new = versions(fake, CHEMICAL, engine="fast", **{"engine-version": 2})
    held = index(fake, (SOCIAL, old), (CHEMICAL, new))
    keys = held.choose([SOCIAL, CHEMICAL], "default", Pick()).values()
    with pytest.raises(UserError, match=r"different engine-version of fast \(1, 2\)"):
        held.check_agreement(keys, Pick())
    assert held.check_agreement(keys, Pick(mix=frozenset({"engine-version"}))) == ["engine-version: 1, 2"]
    chosen = held.choose([SOCIAL, CHEMICAL], "default", Pick({"engine-version": "1"}))
    assert chosen[SOCIAL] and not chosen[CHEMICAL]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": {"preset": "quick", "epochs": 100}}, "--preset"),
        ({"training": {"epochs": 9}}, "epochs"),
        ({"torch": "2.14"}, "--where torch="),
        ({"augmenter": 2}, "--where augmenter-version="),
        ({"protocol": 2}, "--where protocol="),
    ],
)
def test_presets_and_versions_are_told_apart(fake: ModuleType, change: dict[str, Any], message: str) -> None:
    own = {"training": {**fake.TRAINING, **change.get("training", {})}}
    other = own if "training" in change else versions(fake, CHEMICAL, **change)
    with pytest.raises(UserError, match=message):
        index(fake, (CHEMICAL, {}), (CHEMICAL, other)).choose([CHEMICAL], "default", Pick())


def test_latest_takes_what_was_run_last(fake: ModuleType) -> None:
    old, new = fake.cell(CHEMICAL), fake.cell(CHEMICAL, **versions(fake, CHEMICAL, augmenter=2))
    lines = [old, new, fake.trial(new.key, 0, 0, 0.5, finished="2026-02-01"), fake.trial(old.key, 0, 0, 0.4)]
    held = Index(from_records(lines))
    assert held.choose([CHEMICAL], "default", Pick({"augmenter-version": "latest"})) == {CHEMICAL: new.key}


def test_one_table_does_not_mix_social_features_of_two_sets(fake: ModuleType) -> None:
    multi = Coordinate("IMDB-MULTI", 10, "none")
    held = index(fake, (SOCIAL, {}), (multi, {"features": "degree"}), (CHEMICAL, {}))
    keys = list(held.choose([SOCIAL, multi, CHEMICAL], "default", Pick()).values())
    with pytest.raises(UserError, match=r"cannot hold cells of different features \(constant, degree\)"):
        held.check_agreement(keys, Pick())
    assert held.check_agreement([keys[0], keys[2]], Pick()) == []
    assert held.check_agreement(keys, Pick(mix=frozenset({"features"}))) == ["features: constant, degree"]


def test_one_table_does_not_mix_own_and_published_splits(fake: ModuleType) -> None:
    other = Coordinate("DD", 10, "none")
    held = index(fake, (CHEMICAL, {}), (other, {"splits": "stratified"}))
    keys = list(held.choose([CHEMICAL, other], "default", Pick()).values())
    with pytest.raises(UserError, match="--where splits=published, or allow it with --mix splits"):
        held.check_agreement(keys, Pick())


def test_versions_of_other_methods_may_differ_but_torch_may_not(fake: ModuleType) -> None:
    other = Coordinate("PROTEINS", 10, "dropedge")
    held = index(fake, (CHEMICAL, {}), (other, versions(fake, other, augmenter=3)))
    assert held.check_agreement(held.cells, Pick()) == []
    held = index(fake, (CHEMICAL, {}), (other, versions(fake, other, torch="3.0")))
    with pytest.raises(UserError, match=r"different torch \(2.13, 3\)|different torch \(2.13, 3.0\)"):
        held.check_agreement(held.cells, Pick())


def test_default_and_tuned_are_different_cells(fake: ModuleType) -> None:
    lines = fake.ledger([CHEMICAL], folds=1, repeats=1) + fake.tuned([CHEMICAL], folds=1, repeats=1)
    held = Index(from_records(lines))
    default, tuned = (held.choose([CHEMICAL], kind, Pick())[CHEMICAL] for kind in ("default", "tuned"))
    assert default != tuned
    assert held.check_agreement([default, tuned], Pick()) == [], "what was tuned differs by design"
    for kind, key in (("default", default), ("tuned", tuned)):
        assert held.choose([CHEMICAL], kind, Pick({"preset": "standard"})) == {CHEMICAL: key}


def test_a_tuned_cell_agrees_with_the_preset_that_it_started_from_and_no_other(fake: ModuleType) -> None:
    quick = index(fake, (CHEMICAL, {}), (CHEMICAL, {"tuned": True, "training": {**fake.TRAINING, "preset": "quick"}}))
    with pytest.raises(UserError, match=r"different preset \(quick, standard\)"):
        quick.check_agreement(quick.cells, Pick())
    assert quick.choose([CHEMICAL], "tuned", Pick({"preset": "standard"})) == {CHEMICAL: None}
    changed = index(fake, (CHEMICAL, {}), (CHEMICAL, {"training": {**fake.TRAINING, "preset": "standard+lr=1"}}))
    with pytest.raises(UserError, match=r"different preset \(standard, standard\+lr=1\)"):
        changed.check_agreement(changed.cells, Pick())


@pytest.mark.parametrize(
    ("label", "tuned_from", "expected"),
    [
        ("gdm-acc:eps=0.2,without=low", None, "gdm-acc:without=low"),
        ("dropedge:p=0.4", None, "dropedge"),
        ("gdm-acc:encoder=vgsae", "gdm-acc", "gdm-acc"),
    ],
)
def test_a_tuned_cell_stands_for_what_it_was_tuned_from(label: str, tuned_from: str | None, expected: str) -> None:
    cell = {"augmenter": label, "tuned": True, "tuned_from": tuned_from}
    assert base_label(cell, "augmenter") == expected
    assert base_label({**cell, "tuned": False}, "augmenter") == label


def test_unknown_property_is_told_the_known_ones(fake: ModuleType) -> None:
    with pytest.raises(UserError, match=r"unknown property of cells 'torhc'\. Did you mean: torch"):
        index(fake, (CHEMICAL, {})).choose([CHEMICAL], "default", Pick({"torhc": "1"}))


def test_settings_that_no_property_tells_apart_are_an_error_too(fake: ModuleType) -> None:
    variants = [
        (CHEMICAL, {"tuned": True, "augmenter": {"name": "none", "settings": {"a": a}, "label": f"none:a={a}"}})
        for a in (1, 2)
    ]
    with pytest.raises(UserError, match="2 cells with different settings of the method"):
        index(fake, *variants).choose([CHEMICAL], "tuned", Pick())
