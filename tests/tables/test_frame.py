"""Records to frames: retries, plans, round trips."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from bench.registry import UserError
from tables.frame import from_records, read_parquet, write_parquet
from tables.selection import Index
from tables.specs import Coordinate

PLACE = Coordinate("PROTEINS", 10, "none")


def test_a_retry_replaces_a_failure_but_no_failure_replaces_a_result(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    key = cell["key"]
    lines = [cell, fake.trial(key, 0, 0, None), fake.trial(key, 0, 0, 0.5), fake.trial(key, 0, 0, 0.6)]
    results = from_records([*lines, fake.trial(key, 0, 0, None), fake.trial(key, 1, 0, None)])
    assert results.values(key).to_dict() == {(0, 0): 0.6}
    assert results.trials["status"].tolist() == ["done", "failed"]


def test_planned_trials_are_the_union_of_the_plans(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    key = cell["key"]
    plans = [fake.plan([key], [0, 1], [0]), fake.plan([key], [1, 2], [0], grid="other")]
    results = from_records([cell, *plans, fake.trial(key, 0, 0, 0.5)])
    assert results.planned_trials(key) == 3
    assert results.grids == ["full", "other"]
    assert from_records([cell, fake.trial(key, 0, 0, 0.5)]).planned_trials(key) == 1
    assert results.planned_trials(None) == 0
    assert results.values(None).empty


def test_done_without_a_number_is_a_failure_with_a_reason(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    results = from_records([cell, fake.trial(cell["key"], 0, 0, math.nan)])
    assert results.trials.loc[0, "status"] == "failed"
    assert "without a finite accuracy" in results.trials.loc[0, "reason"]


def test_a_trial_of_no_cell_is_refused(fake: ModuleType) -> None:
    with pytest.raises(UserError, match="does not describe \\(lost\\)"):
        from_records([fake.trial("lost", 0, 0, 0.5)])


def test_other_lines_are_passed_over_and_an_empty_ledger_is_empty() -> None:
    results = from_records([{"type": "something new"}])
    assert len(results.trials) == len(results.cells) == 0


def test_tidy_has_a_row_a_trial_with_its_cell_beside_it(fake: ModuleType) -> None:
    frame = from_records(fake.ledger([PLACE], folds=2, repeats=2)).tidy()
    assert len(frame) == 4
    assert set(frame["training.epochs"]) == {800}
    assert set(frame["augmenter"]) == {"none"}


def test_parquet_brings_everything_back(fake: ModuleType, tmp_path: Path) -> None:
    places = [PLACE, Coordinate("IMDB-BINARY", 3, "gdm-acc:encoder=vgsae")]
    records = fake.ledger(places, folds=3, repeats=2, value=lambda p, f, r: None if f == 2 else fake.accuracy(p, f, r))
    records = [r for r in records if not (r["type"] == "trial" and r["fold"] == 1)]
    records += fake.tuned(places[:1], folds=2, repeats=1)
    records.append(fake.plan([], [0], [0], skipped=[{"cell": "a", "reason": "b"}], grid="x"))
    before = from_records(records)
    write_parquet(before, tmp_path / "trials.parquet")
    after = read_parquet(tmp_path / "trials.parquet")
    assert after.planned == before.planned
    assert (after.skipped, after.provenance, after.grids) == (before.skipped, before.provenance, before.grids)
    for key in before.cells.index:
        pd.testing.assert_series_equal(after.values(key), before.values(key), check_index_type=False)
    assert after.trials["status"].value_counts().to_dict() == before.trials["status"].value_counts().to_dict()
    first, second = Index(before), Index(after)
    assert set(first.cells) == set(second.cells)
    assert sorted(first.coordinates(["tuned"])) == sorted(second.coordinates(["tuned"]))
    for key in first.cells:
        assert first._facts(first.cells[key]) == second._facts(second.cells[key])


def test_a_file_that_holds_no_trials_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("no parquet")
    with pytest.raises(UserError, match="cannot be read as a parquet file"):
        read_parquet(path)
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(UserError, match="is not a file of trials"):
        read_parquet(path)
