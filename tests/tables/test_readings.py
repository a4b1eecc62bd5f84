"""Readings of the paper: which cells are one, the gain of each, and what a choice changes where all else is equal."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from bench.cli.commands.readings import readings
from bench.cli.study_holes import holes
from bench.plan.cells import Cell
from bench.plan.grids import named_grid, product
from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.registry import Choice, UserError
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord, PlanRecord, TrialRecord
from tables import readings as reading
from tables.figures.specification import specification_curve

GDM = {"output": "linear", "padding": "embeddings", "alignment": "random", "generated": "once", "count": 1.0}
GCN = Choice("gcn", {"dropout": 0.0, "layers": 4, "norm": "none", "residual": False, "width": 64}, "gcn")


def cell(augmenter: str, base: str = "standard", dataset: str = "PROTEINS", **training: Any) -> Cell:
    name, _, written = augmenter.partition(":")
    given = dict(part.split("=") for part in written.split(",") if part)
    settings = {} if name == "none" else {**GDM, **given}
    return Cell(
        dataset=dataset,
        features="native",
        splits="CHEMICAL",
        k=10,
        learner=Choice("gnn", {}, "gnn"),
        augmenter=Choice(name, settings, augmenter),
        backbone=GCN,
        readout=Choice("mean", {}, "mean"),
        training=preset(base).with_settings(training),
        versions={"protocol": 1},
    )


def ledger(*cells: tuple[Cell, list[float]]) -> LedgerState:
    """Each cell with its accuracies, one per fold."""
    records: list[Any] = []
    for one, values in cells:
        records.append(CellRecord(one.key, one))
        records += [
            TrialRecord(one.key, fold, 0, "done", accuracy=value, predicted={"0": 1.0, "1": 0.0})
            for fold, value in enumerate(values)
        ]
    return LedgerState.of(records)


STATE = ledger(
    (cell("none"), [0.60, 0.62, 0.64]),
    (cell("gdm-unc"), [0.61, 0.64, 0.67]),
    (cell("none", "paper"), [0.55, 0.55, 0.55]),
    (cell("gdm-unc", "paper"), [0.60, 0.60, 0.60]),
    (cell("gdm-unc:count=2", "paper"), [0.50, 0.50, 0.50]),
    (cell("gdm-unc", lr=0.1), [0.9, 0.9, 0.9]),  # no reading: the paper says the learning rate
    (cell("gdm-unc", start="pretrained"), [0.62, 0.64, 0.66]),
)


def test_gains_are_paired_with_plain_training_of_the_same_reading() -> None:
    frame = reading.study(STATE).specifications
    gains = {(row["head"], row["start"], row["count"]): round(row["gain"], 6) for _, row in frame.iterrows()}
    assert gains == {
        ("linear", "fresh", "1"): 0.02,
        ("linear", "pretrained", "1"): 0.02,  # plain training has no start of its own
        ("relu", "fresh", "1"): 0.05,
        ("relu", "fresh", "2"): -0.05,
    }
    assert set(frame["baseline"].round(6)) == {0.62, 0.55} and set(frame["collapse"]) == {1.0}
    wide = frame[(frame["head"] == "linear") & (frame["start"] == "fresh")].iloc[0]
    assert wide["low"] == pytest.approx(0.02 - 4.302653 * 0.01 / math.sqrt(3))  # t of two degrees of freedom


def test_what_a_choice_changes_where_all_else_is_equal() -> None:
    found = reading.study(STATE)
    text = "\n".join(reading.paragraphs(found))
    words = "plain training changes by -7.0 points (1 pair) and the gain of GDM by +3.0 (1 pair of specifications)."
    assert f"From linear to relu, all else equal, {words}" in text
    assert "From 1 to 2, all else equal, the gain of GDM changes by -10.0 points (1 pair" in text
    page = reading.markdown(found)
    assert "Plain training is moved most by `head`: -7.0 points from linear to relu" in page
    assert (
        "| head=linear, features=native, start=pretrained |" in page
        and "| head=relu, features=native, count=2 |" in page
    )
    assert "Of 4 specifications, 2 have an interval above zero and 1 below" in page
    assert "+5.0" in page and page.index("head=relu") < page.index("head=linear")  # the largest gain on top


def test_a_gain_is_held_against_the_papers() -> None:
    """The paper has 59.3 for GCN and 65.1 for GDM Unc on PROTEINS, a gain of 5.8 points."""
    found = reading.study(
        ledger(
            (cell("none"), [0.6, 0.6, 0.6]),
            (cell("gdm-unc"), [0.66, 0.66, 0.66]),
            (cell("gdm-unc:count=2"), [0.6, 0.64, 0.68]),  # 4 points, plus or minus 9.9
            (cell("gdm-unc:count=5"), [0.61, 0.61, 0.61]),
        )
    )
    assert found.specifications["papers_gain"].tolist() == pytest.approx([0.058] * 3)
    text = " ".join(reading.summary_sentences(found))
    assert "a gain for 3 of them, +5.8 points on average: 1 show as large a one, and 2 have an interval that" in text


def test_large_sets_have_rows_of_their_own() -> None:
    small, large = cell("none"), cell("none", dataset="DD")
    state = ledger(
        (small, [0.6, 0.6]),
        (cell("gdm-unc"), [0.7, 0.7]),
        (large, [0.5, 0.5]),
        (cell("gdm-unc", dataset="DD"), [0.4] * 2),
    )
    rows = {row["datasets"]: round(row["gain"], 6) for _, row in reading.study(state).readings.iterrows()}
    assert rows == {"Proteins": 0.1, "D&D": -0.1}


def test_what_is_missing_is_said_and_unfinished_cells_are_left_out() -> None:
    plain, done, begun = cell("none"), cell("gdm-unc"), cell("gdm-acc")
    trials = [(fold, repeat) for fold in range(10) for repeat in range(3)]
    records: list[Any] = [
        PlanRecord("readings", tuple(one.key for one in (plain, done, begun)), tuple(range(10)), tuple(range(3)))
    ]
    records += [CellRecord(one.key, one) for one in (plain, done, begun)]
    records += [TrialRecord(one.key, *at, "done", accuracy=0.6) for one in (plain, done) for at in trials]
    state = LedgerState.of([*records, TrialRecord(begun.key, 0, 0, "done", accuracy=0.9)])
    found = reading.study(state, holes(state, named_grid("readings")))
    assert found.specifications["method"].tolist() == ["gdm-unc"] and found.readings["trials"].tolist() == [30]
    cells = named_grid("readings").cells
    absent = sum(at.dataset == "PROTEINS" for at in cells) - 3
    assert found.holes[0] == f"The study is not finished: 2 of its {len(cells)} cells have all 30 trials."
    assert f"{absent} on Proteins" in found.holes[1] and "With fewer than 30: 1 on Proteins;" in found.holes[2]
    assert " ".join(found.holes) in reading.markdown(found)
    failed = [TrialRecord(begun.key, *at, "failed", reason="lost") for at in trials[1:]]
    broken = reading.study(LedgerState.of([*records, TrialRecord(begun.key, 0, 0, "done", accuracy=0.9), *failed]))
    assert sorted(broken.specifications["trials"]) == [1, 30] and "| 1/30 |" in reading.markdown(broken)


def test_nothing_is_missing_where_every_cell_has_all_its_trials() -> None:
    grid = replace(named_grid("quick"), cells=product(["PROTEINS"], ["none", "gdm-unc"], [10]), folds=3, repeats=1)
    state = ledger((cell("none", "quick"), [0.6] * 3), (cell("gdm-unc", "quick"), [0.6] * 3))
    assert holes(state, grid) == []
    assert holes(state, replace(grid, preset="paper"))[1] == "Without a trial: 2 on Proteins."


def test_two_cells_of_one_reading_are_refused() -> None:
    other = replace(cell("gdm-unc"), splits="stratified")
    with pytest.raises(UserError, match="PROTEINS has two gdm-unc cells of one reading that differ in splits"):
        reading.study(ledger((cell("none"), [0.5]), (cell("gdm-unc"), [0.5]), (other, [0.5])))
    with pytest.raises(UserError, match="no finished GDM cell"):  # other folds are no baseline
        reading.study(ledger((cell("none"), [0.5]), (other, [0.5])))


def test_epochs_are_a_choice_of_the_baseline() -> None:
    state = ledger((cell("none"), [0.6, 0.6]), (cell("none", epochs=100), [0.5, 0.5]), (cell("gdm-unc"), [0.6, 0.6]))
    frame = reading.study(state).specifications
    assert {row["epochs"]: round(row["gain"], 6) for _, row in frame.iterrows()} == {"800": 0.0, "100": 0.1}


def test_other_cells_are_no_readings() -> None:
    other = [cell("gdm-unc", epochs=100), cell("gdm-unc", weight_decay=0.1), cell("none", start="pretrained")]
    other += [cell("gdm-cal"), cell("gdm-unc:eps=0.5"), replace(cell("gdm-unc"), training=preset("quick"))]
    assert [reading.levels_of(one) for one in other] == [None] * len(other)
    with pytest.raises(UserError, match="--grid readings"):
        reading.study(ledger((cell("gdm-unc"), [0.5])))


def test_the_curve_has_a_column_for_each_specification_and_a_row_for_each_level() -> None:
    frame = reading.study(STATE).specifications
    figure = specification_curve(frame, reading.varied(frame))
    top, below = figure.axes
    assert [label.get_text() for label in below.get_yticklabels()] == [
        "head = linear",
        "head = relu",
        "start = fresh",
        "start = pretrained",
        "count = 1",
        "count = 2",
    ]
    dots = [line for line in below.get_lines() if line.get_marker() == "|"]
    assert sorted(len(line.get_xdata()) for line in dots) == [1, 1, 2, 2, 3, 3]
    assert [one.get_text() for one in figure.legends[0].get_texts()] == [
        "95 % interval above zero",
        "below zero",
        "contains zero",
    ]
    assert "4 specifications" in below.get_xlabel() and "points" in top.get_ylabel()


def test_the_command_writes_page_tables_and_figure(tmp_path: Path) -> None:
    done = [cell("none"), cell("gdm-unc")]
    records: list[Any] = [CellRecord(one.key, one) for one in done]
    records += [TrialRecord(one.key, fold, 0, "done", accuracy=0.6) for one in done for fold in range(3)]
    (tmp_path / "ledger.jsonl").write_text("".join(json.dumps(one.to_json()) + "\n" for one in records))
    app = typer.Typer()
    app.command()(readings)
    ran = CliRunner().invoke(app, ["-w", str(tmp_path), "--formats", "png"], catch_exceptions=False)
    assert ran.exit_code == 0 and "Of 1 specification, 0 have" in ran.output
    assert "0 of its" in ran.output and "With fewer than 30: 2 on Proteins" in ran.output
    written = {path.name for path in (tmp_path / "readings").iterdir()}
    assert written == {"readings.md", "readings.csv", "specifications.csv", "specification-curve.png"}
    assert len(pd.read_csv(tmp_path / "readings" / "specifications.csv")) == 1
    with pytest.raises(UserError, match="unknown format"):
        CliRunner().invoke(app, ["-w", str(tmp_path), "--formats", "gif"], catch_exceptions=False)


def test_the_study_names_each_reading_once_and_leaves_plain_training_alone() -> None:
    grid = named_grid("readings")
    assert len(grid.cells) == len(set(grid.cells))
    for at in grid.cells:
        words = dict(at.where)
        assert words["preset"] in ("paper", "standard")
        assert at.augmenter != "none" or "start" not in words
        assert "features" not in words or at.dataset.startswith("IMDB")
    factorial = [at for at in grid.cells if at.dataset == "PROTEINS" and at.augmenter == "gdm-acc"]
    assert len(factorial) == 2 * 2 * 2


def test_a_cell_of_a_grid_may_have_a_preset_and_features_of_its_own(tmp_path: Path) -> None:
    at = product(["synthetic"], ["none"], [2])[0]
    grid = replace(named_grid("quick"), cells=(replace(at, where=(("preset", "paper"), ("select", "best-val"))), at))
    letter, quick = Planner(tmp_path).plan(grid).cells
    assert letter.training == preset("paper").with_settings({"select": "best-val"})
    assert quick.training == preset("quick")
