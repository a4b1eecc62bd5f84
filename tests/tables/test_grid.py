"""Filled tables: means, marks, ties, gaps, reference, side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
from scipy import stats

from bench.plan.cells import TUNED_ON
from bench.registry import UserError
from bench.results.frame import from_records
from tables.formats import tidy
from tables.grid import Entry, Grid, Request, fill, reference_of
from tables.selection import Index, Pick
from tables.specs import METHODS, TABLES, Column, Coordinate, Row, TableSpec
from tables.statistics import holm
from tables.wanted import specs_for
from tables.wording import UNPAIRED, caption, notes, shown

Value = Callable[[Coordinate, int, int], float | None]
ROWS = (Row("GCN", "none"), Row("A", "dropedge"), Row("B", "dropnode"), Row("C", "softedge"))
SPEC = TableSpec("t", "{measure} here.", (ROWS,), (Column("PROTEINS", 10, "10"),))


def filled(fake: ModuleType, value: Value, spec: TableSpec = SPEC, **request: object) -> Grid:
    index = Index(from_records(fake.ledger(spec.coordinates(), value=value)))
    return fill(index, spec, Request(**request))  # type: ignore[arg-type]


def column(grid: Grid) -> dict[str, Entry]:
    return {line.name: line.entries[0] for line in grid.lines}


def steps(levels: dict[str, float]) -> Value:
    """Every method at its level, plus noise that all share and a little of its own."""

    def value(place: Coordinate, fold: int, repeat: int) -> float:
        own = ((len(place.augmenter) + 3 * fold + repeat) % 5 - 2) * 0.001
        return round(levels[place.augmenter] + 0.01 * fold + 0.002 * repeat + own, 6)

    return value


def test_means_and_deviations_are_those_of_the_trials(fake: ModuleType) -> None:
    grid = filled(fake, fake.accuracy)
    for name, entry in column(grid).items():
        augmenter = next(row.augmenter for row in ROWS if row.name == name)
        place = Coordinate("PROTEINS", 10, augmenter)
        values = [fake.accuracy(place, fold, repeat) for fold in range(10) for repeat in range(3)]
        assert entry.value.mean == pytest.approx(sum(values) / 30)
        assert entry.value.std == pytest.approx(stats.tstd(values))
        assert (entry.value.n, entry.planned) == (30, 30)


def test_p_values_are_of_the_means_of_folds_with_holm_over_column_and_table(fake: ModuleType) -> None:
    columns = (Column("PROTEINS", 10, "a"), Column("DD", 10, "b"))
    spec = TableSpec("t", "{measure}.", (ROWS,), columns)
    grid = fill(Index(from_records(fake.ledger(spec.coordinates()))), spec, Request())
    p_values: dict[str, list[float]] = {}
    for place in columns:
        for row in ROWS[1:]:
            plain = replace(row, augmenter="none")
            means = [
                sum(fake.accuracy(row.at(place), fold, r) - fake.accuracy(plain.at(place), fold, r) for r in range(3))
                / 3
                for fold in range(10)
            ]
            p_values.setdefault(place.dataset, []).append(stats.ttest_1samp(means, 0).pvalue)
    for number, place in enumerate(columns):
        found = [line.entries[number].p_holm for line in grid.lines[1:]]
        assert found == pytest.approx(holm(p_values[place.dataset]))
    whole = [line.entries[number].p_table for number in (0, 1) for line in grid.lines[1:]]
    assert whole == pytest.approx(holm([*p_values["PROTEINS"], *p_values["DD"]]))
    assert math.isnan(grid.lines[0].entries[0].p_holm) and grid.lines[0].entries[0].difference is None
    kept = sum(p < 0.05 for p in whole)
    (note,) = [words for words in notes(grid, "differences") if words.startswith("With Holm's")]
    assert f"all {len(whole)} differences of the table, {kept or 'none'} remain" in note


def test_best_is_bold_alone_when_it_is_clearly_best(fake: ModuleType) -> None:
    levels = {"none": 0.5, "dropedge": 0.6, "dropnode": 0.4, "softedge": 0.5}
    entries = column(filled(fake, steps(levels), mark="ties"))
    assert [name for name, e in entries.items() if e.best] == ["A"]
    assert not any(e.tied for e in entries.values())
    assert [entries[name].sign for name in ("GCN", "A", "B")] == ["", "+", "-"]


def test_two_equal_methods_are_both_best(fake: ModuleType) -> None:
    def value(place: Coordinate, fold: int, repeat: int) -> float:
        return (0.6 if place.augmenter in ("dropedge", "dropnode") else 0.5) + 0.01 * fold

    entries = column(filled(fake, value, mark="ties"))
    assert [name for name, e in entries.items() if e.best] == ["A", "B"]
    assert not entries["A"].tied and not entries["C"].tied
    assert entries["C"].difference is not None and entries["C"].difference.p == 1.0
    assert entries["C"].sign == ""


def test_noise_is_a_tie_not_a_win(fake: ModuleType) -> None:
    def value(place: Coordinate, fold: int, repeat: int) -> float:
        wobble = 0.01 * (fold + 1) * (1 if (fold + repeat) % 2 else -1) + 0.001
        return 0.5 + (wobble if place.augmenter == "dropedge" else 0) - (0.2 if place.augmenter == "softedge" else 0)

    entries = column(filled(fake, value, mark="ties"))
    assert entries["A"].best and entries["GCN"].tied and entries["B"].tied and not entries["C"].tied
    assert shown(entries["GCN"], "values", "ties").underlined
    assert not shown(entries["A"], "values", "significance").bold, "no significance, no bold"
    assert shown(entries["C"], "values", "significance").raised == ("-",)


def test_a_missing_trial_shows_and_strict_refuses(fake: ModuleType) -> None:
    def value(place: Coordinate, fold: int, repeat: int) -> float | None:
        return None if (place.augmenter, fold, repeat) == ("dropedge", 3, 1) else fake.accuracy(place, fold, repeat)

    grid = filled(fake, value)
    entry = column(grid)["A"]
    assert (entry.value.n, entry.planned, entry.incomplete) == (29, 30, True)
    assert shown(entry, "values", "best").raised == ("29/30",)
    assert entry.difference is not None and entry.difference.n == 29
    assert any(note.startswith("n/N") for note in notes(grid))
    with pytest.raises(UserError, match=r"1 cells without all their trials .*dropedge gcn mean has 29 of 30 trials"):
        filled(fake, value, strict=True)


def test_absent_cells_are_dashes(fake: ModuleType) -> None:
    index = Index(from_records(fake.ledger([Coordinate("PROTEINS", 10, "none")])))
    grid = fill(index, TABLES["GAE"], Request())
    absent = grid.groups[1][0].entries[0]
    assert shown(absent, "values", "best").main == "--" and shown(absent, "values", "best").raised == ()
    assert shown(absent, "differences", "best").main == "--" and shown(absent, "cost", "best").main == "--"
    with pytest.raises(UserError, match="was never run"):
        fill(index, TABLES["GAE"], Request(strict=True))


def test_all_trials_failed_is_a_dash_with_its_count(fake: ModuleType) -> None:
    entry = column(filled(fake, lambda p, f, r: None if p.augmenter == "dropedge" else 0.5))["A"]
    assert (shown(entry, "values", "best").main, shown(entry, "values", "best").raised) == ("--", ("0/30",))


def test_a_group_of_one_row_has_no_best(fake: ModuleType) -> None:
    grid = fill(Index(from_records(fake.ledger())), TABLES["Match"], Request())
    assert not any(entry.best for entry in grid.groups[0][0].entries)
    for group in grid.groups[1:]:
        assert all(any(line.entries[c].best for line in group) for c in range(8))


def test_tuned_rows_stand_beside_the_default_ones(fake: ModuleType) -> None:
    records = fake.ledger(SPEC.coordinates()) + fake.tuned(SPEC.coordinates())
    grid = fill(Index(from_records(records)), SPEC, Request(settings=("default", "tuned")))
    assert [line.name for line in grid.lines][:4] == ["GCN", "GCN (tuned)", "A", "A (tuned)"]
    default, tuned = grid.lines[2].entries[0], grid.lines[3].entries[0]
    assert tuned.value.mean == pytest.approx(default.value.mean + 0.01)
    assert tuned.difference is not None and default.difference is not None
    assert tuned.difference.mean == pytest.approx(default.difference.mean), "tuned is compared with tuned"
    assert "Training: standard (800 epochs, linear logits), tuned from standard." in caption(grid)


@pytest.mark.parametrize(("how", "name"), [("nested", "A (tuned)"), ("pooled", "A (tuned, pooled)")])
def test_a_table_says_what_tuned_settings_were_chosen_on(fake: ModuleType, how: str, name: str) -> None:
    index = Index(from_records(fake.ledger(SPEC.coordinates()) + fake.tuned(SPEC.coordinates(), how)))
    grid = fill(index, SPEC, Request(settings=("default", "tuned")))
    assert grid.lines[3].name == name
    assert f"Tuned: {TUNED_ON[how]}." in caption(grid)
    alone = fill(index, SPEC, Request(settings=("tuned",)))
    assert [line.name for line in alone.lines][1] == ("A" if how == "nested" else "A (pooled)")
    assert "Tuned:" not in caption(fill(index, SPEC, Request()))


def test_nested_and_pooled_cells_never_stand_in_one_table_by_chance(fake: ModuleType) -> None:
    places = SPEC.coordinates()
    lines = fake.ledger(places) + fake.tuned(places) + fake.tuned(places, "pooled")
    index, settings = Index(from_records(lines)), ("default", "tuned")
    with pytest.raises(UserError, match=r"differ in tuning \(nested, pooled\); choose one with --where tuning=nested"):
        fill(index, SPEC, Request(settings=settings))
    grid = fill(index, SPEC, Request(settings=settings, pick=Pick({"tuning": "pooled"})))
    assert [line.name for line in grid.lines][:2] == ["GCN", "GCN (tuned, pooled)"], "default rows stay"


def test_a_table_says_when_tuned_rows_start_from_other_weights(fake: ModuleType) -> None:
    def grid(*backbones: str) -> Grid:
        by_fold = {str(fold): {"training": {"lr": 0.003 + fold / 1000}} for fold in range(10)}
        for fold, label in enumerate(backbones):
            by_fold[str(fold)]["backbone"] = fake.choice(label)
        tuned = fake.ledger(SPEC.coordinates(), tuned=True, tuned_how="nested", by_fold=by_fold)
        held = from_records([*fake.ledger(SPEC.coordinates()), *tuned])
        return fill(Index(held), SPEC, Request(settings=("default", "tuned")))

    assert UNPAIRED not in notes(grid()), "other learning rates by fold, the same network"
    assert UNPAIRED not in notes(grid("gcn:dropout=0.3")), "dropout has no weights"
    assert UNPAIRED in notes(grid("gcn:width=16"))


def test_a_table_without_tuned_cells_is_not_doubled(fake: ModuleType) -> None:
    index = Index(from_records(fake.ledger(SPEC.coordinates()) + fake.tuned([Coordinate("DD", 10, "none")])))
    grid = fill(index, SPEC, Request(settings=("default", "tuned")))
    assert [line.name for line in grid.lines] == ["GCN", "A", "B", "C"]


def test_other_metrics(fake: ModuleType) -> None:
    accuracy, balanced = (filled(fake, fake.accuracy, metric=m) for m in ("accuracy", "balanced_accuracy"))
    assert column(balanced)["A"].value.mean == pytest.approx(column(accuracy)["A"].value.mean - 0.05)
    assert "balanced classification accuracy in percent" in caption(balanced)
    with pytest.raises(UserError, match="unknown metric 'acuracy'"):
        filled(fake, fake.accuracy, metric="acuracy")
    with pytest.raises(UserError, match="unknown mark"):
        Request(mark="bold")
    with pytest.raises(UserError, match="unknown settings"):
        Request(settings=("deflaut",))


def test_costs_are_seconds_per_trial(fake: ModuleType) -> None:
    entry = column(filled(fake, fake.accuracy))["A"]
    assert entry.seconds_augment == pytest.approx(0.25)
    assert entry.seconds_train == pytest.approx(2.45)
    assert (shown(entry, "cost", "best").main, shown(entry, "cost", "best").spread) == ("2.7", "(0.25)")


def test_collapse_and_the_fallback_of_gdm_acc_are_told(fake: ModuleType) -> None:
    spec = replace(SPEC, groups=((Row("GCN", "none"), Row("GDM Acc", "gdm-acc"), Row("GDM Unc", "gdm-unc")),))
    records = fake.ledger(spec.coordinates())
    acc = fake.cell(Coordinate("PROTEINS", 10, "gdm-acc")).key
    made = {"count": 21, "density": 0.8, "density_original": 0.3, "fallback_acc_empty_pool": 1.0}
    for fold in range(10):  # the second label draw of ten folds fell back, the third of five collapsed
        records.append(fake.trial(acc, fold, 1, generated=made))
        records += [fake.trial(acc, fold, 2, predicted={"0": 1.0, "1": 0.0})] * (fold < 5)
    grid = fill(Index(from_records(records)), spec, Request())
    entry = column(grid)["GDM Acc"]
    assert entry.ranked == pytest.approx(1 / 3) and entry.collapsed == pytest.approx(1 / 6)
    assert shown(entry, "cost", "best").raised == ("c17", "f33")
    assert all(one.ranked == 0 for name, one in column(grid).items() if name != "GDM Acc")
    values, costs = "\n".join(notes(grid)), "\n".join(notes(grid, "cost"))
    assert "one cell holds trials that put all test graphs into one class (up to 17 %" in values
    assert "Fallback: one cell of GDM Acc with a split by rank" in values and "up to 33 %" in values
    assert "GDM Unc has the same split" in values and "GDM Unc has the same split" in costs
    assert "c: percent" in costs and "f: percent" in costs
    row = tidy(grid, Index(from_records(records))).set_index("row")["ranked"]
    assert row["GDM Acc"] == pytest.approx(1 / 3) and row["GCN"] == 0


def test_reference_prefers_the_same_readout() -> None:
    place = Coordinate("PROTEINS", 10, "gdm-acc", "gin", "add")
    same = Coordinate("PROTEINS", 10, "none", "gin", "add")
    assert reference_of(place) == same


def test_tables_offered_are_those_with_cells_and_custom_for_the_rest(fake: ModuleType) -> None:
    digits = [Coordinate("digits", 5, name) for name in ("none", "dropedge")]
    index = Index(from_records(fake.ledger(digits)))
    (spec,) = specs_for(index, (), ["default"])
    assert spec.name == "custom" and set(spec.coordinates()) == set(digits)
    grid = fill(index, spec, Request())
    assert grid.context.splits == ("stratified",)
    assert "stratified folds made by this benchmark" in caption(grid)
    assert any("not the published ones" in note for note in notes(grid))
    with pytest.raises(UserError, match="unknown table 'Mach'"):
        specs_for(index, ["Mach"], ["default"])
    with pytest.raises(UserError, match="there are no tuned cells yet"):
        specs_for(index, (), ["tuned"])


def test_what_no_table_names_stands_beside_plain_training(fake: ModuleType) -> None:
    places = [Coordinate("PROTEINS", 10, name) for name in ("none", "dropedge:p=0.4", "dropedge")]
    index = Index(from_records(fake.ledger(places)))
    specs = {spec.name: spec for spec in specs_for(index, (), ["default"])}
    assert {row.augmenter for row in specs["custom"].rows} == {"none", "dropedge:p=0.4"}
    assert {"10labelrate", "main_exp", "GAE"} <= set(specs)
    with pytest.raises(UserError, match="every cell is already in another table"):
        specs_for(Index(from_records(fake.ledger(places[:1]))), ["custom"], ["default"])


def test_captions_state_conditions(fake: ModuleType) -> None:
    grid = fill(Index(from_records(fake.ledger())), TABLES["10labelrate"], Request())
    text = caption(grid)
    assert text.startswith(
        "Mean classification accuracy in percent (standard deviation over the trials within brackets)"
    )
    for words in (
        "30 trials per cell",
        "CHEMICAL, COLLABORATIVE_1",
        "a constant where",
        "standard (800 epochs, linear logits)",
    ):
        assert words in text
    assert len(grid.lines) == len(METHODS)


def test_what_may_differ_is_said(fake: ModuleType) -> None:
    spec = TableSpec("t", "{measure}.", (ROWS[:1],), (Column("PROTEINS", 10, "a"), Column("DD", 10, "b")))
    records = fake.ledger(spec.coordinates()[:1]) + fake.ledger(spec.coordinates()[1:], splits="stratified")
    index = Index(from_records(records))
    with pytest.raises(UserError, match="different splits"):
        fill(index, spec, Request())
    grid = fill(index, spec, Request(pick=Pick(mix=frozenset({"splits"}))))
    assert "Cells differ in splits: published, stratified." in notes(grid)
