"""Records to frames: retries, plans, round trips."""

from __future__ import annotations

import math
from types import ModuleType

import pytest

from bench.registry import UserError
from bench.results.frame import flat_cell, from_lines, from_records
from bench.results.records import Flaw
from tables.specs import Coordinate

PLACE = Coordinate("PROTEINS", 10, "none")


def test_a_retry_replaces_a_failure_but_no_failure_replaces_a_result(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    key = cell.key
    lines = [cell, fake.trial(key, 0, 0, None), fake.trial(key, 0, 0, 0.5), fake.trial(key, 0, 0, 0.6)]
    results = from_records([*lines, fake.trial(key, 0, 0, None), fake.trial(key, 1, 0, None)])
    assert results.values(key).to_dict() == {(0, 0): 0.6}
    assert results.trials["status"].tolist() == ["done", "failed"]


def test_planned_trials_are_the_union_of_the_plans(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    key = cell.key
    plans = [fake.plan([key], [0, 1], [0]), fake.plan([key], [1, 2], [0], grid="other")]
    results = from_records([cell, *plans, fake.trial(key, 0, 0, 0.5)])
    assert results.planned_trials(key) == 3
    assert results.grids == ["full", "other"]
    assert from_records([cell, fake.trial(key, 0, 0, 0.5)]).planned_trials(key) == 1
    assert results.planned_trials(None) == 0
    assert results.values(None).empty


def test_lines_are_looked_at_before_they_are_framed(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    lines = [cell.to_json(), fake.trial(cell.key).to_json()]
    assert from_lines(lines).tidy().equals(from_records([cell, fake.trial(cell.key)]).tidy())
    for wrong in ({**lines[1], "accuracy": math.nan}, {"type": "something new"}):
        with pytest.raises(Flaw, match=r"its (accuracy is nan|type is 'something new')"):
            from_lines([*lines, wrong])


def test_settings_that_differ_by_fold_are_said_to(fake: ModuleType) -> None:
    narrow, wide = fake.choice("gcn:width=8"), fake.choice("gcn:width=9")
    by_fold = {"0": {"backbone": narrow, "training": {"lr": 0.1}}, "1": {"backbone": wide, "training": {"lr": 0.1}}}
    cell = fake.cell(PLACE, tuned=True, tuned_how="nested", by_fold=by_fold)
    cell = cell.cell
    flat = flat_cell(cell)
    assert (flat["backbone"], flat["backbone.settings"], flat["weights"]) == ("gcn", "by fold", "by fold")
    assert (flat["training.lr"], flat["training.epochs"], flat["tuned_how"]) == (0.1, 800, "nested")
    assert (flat_cell(cell, 1)["backbone"], flat_cell(cell, 1)["weights"]) == ("gcn:width=9", "gcn:width=9 mean")
    old = fake.cell(PLACE, tuned=True).cell
    assert flat_cell(old)["tuned_how"] == "pooled", "there was no other way at the time"
    assert flat_cell(fake.cell(PLACE).cell)["tuned_how"] is None


def test_a_trial_of_no_cell_is_refused(fake: ModuleType) -> None:
    with pytest.raises(UserError, match="does not describe \\(lost\\)"):
        from_records([fake.trial("lost", 0, 0, 0.5)])


def test_an_empty_ledger_is_empty() -> None:
    results = from_records([])
    assert len(results.trials) == len(results.cells) == 0


def test_tidy_has_a_row_a_trial_with_its_cell_beside_it(fake: ModuleType) -> None:
    frame = from_records(fake.ledger([PLACE], folds=2, repeats=2)).tidy()
    assert len(frame) == 4
    assert set(frame["training.epochs"]) == {800}
    assert set(frame["augmenter"]) == {"none"}


def test_the_share_of_trials_that_took_a_fallback(fake: ModuleType) -> None:
    cell, plain = fake.cell(Coordinate("PROTEINS", 3, "gdm-acc")), fake.cell(PLACE)
    made = {"count": 9.0, "density": 1.0}
    noted = [{**made, "fallback_acc_empty_pool": 1.0, "fallback_pool_of_one": 2.0}, made, made, {**made}]
    lines = [cell, plain, fake.trial(plain.key, 0, 0)]
    lines += [fake.trial(cell.key, fold, 0, generated=figures) for fold, figures in enumerate(noted)]
    results = from_records([*lines, fake.trial(cell.key, 9, 0, None)])
    assert results.fallbacks(cell.key) == {"fallback_acc_empty_pool": 0.25, "fallback_pool_of_one": 0.25}
    assert results.fallbacks(plain.key) == results.fallbacks(None) == {}
