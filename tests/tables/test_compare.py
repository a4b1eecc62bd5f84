"""Ours beside the paper's."""

from __future__ import annotations

import math
from dataclasses import replace
from types import ModuleType

import pytest
from scipy import stats

from bench.registry import UserError
from bench.results.frame import from_records
from tables.compare import OPEN, OUTSIDE, WITHIN, compare, latex, markdown, side_by_side
from tables.grid import Request
from tables.selection import Index
from tables.specs import TABLES, Coordinate

PLACE = Coordinate("PROTEINS", 10, "none")  # the paper has 59.3 (6.8)


def index(fake: ModuleType, low: float, high: float, places: tuple[Coordinate, ...] = (PLACE,)) -> Index:
    """Trials that are half `low`, half `high`."""
    return Index(from_records(fake.ledger(places, value=lambda p, f, r: low if f % 2 else high)))


def test_difference_and_noise_by_hand(fake: ModuleType) -> None:
    found = compare(index(fake, 0.55, 0.65), Request())
    line = found.lines[0]
    ours, theirs = 5 / 3, 6.8 / math.sqrt(30)  # fold means of 55 and 65 by turns: 5 sqrt(10 / 9) over sqrt(10)
    freedom = (ours**2 + theirs**2) ** 2 / (ours**4 / 9 + theirs**4 / 29)
    assert line.ours.mean == pytest.approx(0.6)
    assert line.difference == pytest.approx(0.7)
    assert line.noise == pytest.approx(stats.t.ppf(0.975, freedom) * math.hypot(ours, theirs))
    assert line.our_half == pytest.approx(stats.t.ppf(0.975, 9) * ours)
    assert line.their_half == pytest.approx(stats.t.ppf(0.975, 29) * theirs)
    assert line.verdict == WITHIN
    assert {number.theirs.table for number in found.lines} == {"10labelrate", "GAE"}


def test_collapse_and_the_fallback_of_gdm_acc_are_told(fake: ModuleType) -> None:
    place = replace(PLACE, augmenter="gdm-acc")
    records = fake.ledger([place])
    key, made = fake.cell(place).key, {"count": 21, "fallback_acc_empty_pool": 1.0}
    records += [fake.trial(key, fold, 0, generated=made, predicted={"0": 1.0}) for fold in range(10)]
    found = compare(Index(from_records(records)), Request())
    assert {line.our_words.partition(") ")[2] for line in found.lines} == {"c33 f33"}
    sums = "\n".join(found.sums())
    assert "c: percent of the trials" in sums and "f: percent of the trials" in sums
    assert "GDM Unc has the same split" in sums and "up to 33 % of a cell's" in sums


def test_a_gap_is_outside_of_noise(fake: ModuleType) -> None:
    found = compare(index(fake, 0.75, 0.85), Request(), ["GAE"])
    assert [line.verdict for line in found.lines] == [OUTSIDE]
    assert found.verdicts() == {WITHIN: 0, OUTSIDE: 1, OPEN: 0}
    assert found.sums()[0].startswith("0 of 1 compared numbers are within noise")
    assert "+20.7 points on average, 20.7 in absolute value" in found.sums()[1]
    assert "39 of the paper's 40 numbers have no finished trial" in found.sums()[2]


def test_one_trial_is_too_few(fake: ModuleType) -> None:
    cell = fake.cell(PLACE)
    found = compare(Index(from_records([cell, fake.trial(cell.key, 0, 0, 0.6)])), Request(), ["GAE"])
    assert found.lines[0].verdict == OPEN
    assert "1 have too few trials" in found.sums()[0]


def test_contradictions_stand_where_they_touch(fake: ModuleType) -> None:
    place = Coordinate("PROTEINS", 5, "gdm-unc")
    found = compare(index(fake, 0.6, 0.7, (place, PLACE)), Request())
    lines = [line for line in found.lines if line.theirs.coordinate == place]
    assert [(line.theirs.table, line.theirs.mean) for line in lines] == [("GAE", 66.0), ("Pool", 65.1)]
    assert all(line.words()[-1].endswith(" !") for line in lines)
    assert len(found.touched) == 1
    for text in (markdown(found), latex(found)):
        assert "66.0 (5.3) in one table and 65.1 (5.3) in another" in text


def test_rows_of_one_name_are_told_apart(fake: ModuleType) -> None:
    found = compare(Index(from_records(fake.ledger(folds=2, repeats=1))), Request())
    for name in TABLES:
        places = {(line.row, line.theirs.coordinate.dataset, line.theirs.coordinate.k) for line in found.lines}
        assert {"Acc w/o Low Diff", "Unc w/o Low Diff", "GDM Acc (GIN)", "GDM Acc (GAT)"} <= {row for row, *_ in places}
        lines = [line for line in found.lines if line.theirs.table == name]
        shown = {(line.row, line.theirs.coordinate.dataset, line.theirs.coordinate.k) for line in lines}
        assert len(shown) == len(lines)
    assert len(found.lines) == 256 and found.missing == 0


def test_nothing_to_compare_is_said(fake: ModuleType) -> None:
    with pytest.raises(UserError, match="no cell of the paper's tables has a finished trial"):
        compare(index(fake, 0.5, 0.6, (Coordinate("digits", 2, "none"),)), Request())
    with pytest.raises(UserError, match="the paper has no macro_f1"):
        compare(index(fake, 0.5, 0.6), Request(metric="macro_f1"))


def test_a_table_side_by_side_has_both_numbers_and_holes(fake: ModuleType) -> None:
    text = side_by_side(compare(index(fake, 0.55, 0.65), Request()), "10labelrate")
    lines = text.splitlines()
    assert lines[2] == "| GCN | 60.0 (5.1) *59.3 (6.8)* |" + " -- |" * 5
    assert lines[3] == "| DropNode |" + " -- |" * 6
    assert len(lines) == 2 + len(TABLES["10labelrate"].rows)
