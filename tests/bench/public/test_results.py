"""Results as frames, differences, tables and pictures, from workspaces, ledgers and archives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bench as augbench
from bench.plan.planner import Planner
from bench.registry import UserError
from bench.results.archive import write_archive
from bench.results.records import CellRecord, PlanRecord, TrialRecord
from bench.results.workspace import Workspace
from tables.statistics import paired

METHODS = ("none", "dropedge:p=0.4", "dropedge", "gdm-rand:eps=0.2", "gdm-rand")


@pytest.fixture(scope="module")
def ledger(tools: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up accuracies for a grid of real cells; one trial failed, one is missing."""
    folder = tmp_path_factory.mktemp("results")
    grid = tools.grid(METHODS, k=(2, 10), folds=5, repeats=2)
    plan = Planner(folder / "data").plan(grid)
    rng = np.random.default_rng(0)
    records: list[Any] = [CellRecord(cell.key, cell) for cell in plan.cells] + [PlanRecord.of(plan)]
    for place, cell in enumerate(plan.cells):
        for trial in plan.trials:
            accuracy = round(float(0.5 + 0.02 * place + 0.05 * rng.random()), 4)
            scores = {"accuracy": accuracy, "balanced_accuracy": accuracy, "macro_f1": accuracy}
            done = TrialRecord(cell.key, trial.fold, trial.repeat, "done", **scores, loss=0.5, labels=8)
            if (place, trial.fold, trial.repeat) == (1, 4, 1):
                continue
            failed = (place, trial.fold, trial.repeat) == (2, 0, 0)
            records.append(TrialRecord(cell.key, 0, 0, "failed", "boom") if failed else done)
    tools.write_trials(folder / "runs", records)
    return folder / "runs"


def test_settings_are_columns(ledger: Path) -> None:
    results = augbench.load(ledger)
    cells, trials = results.cells, results.trials
    assert len(cells) == 10 and len(trials) == 99 and len(results) == 98
    drop = cells[cells["augmenter.name"] == "dropedge"]
    assert sorted(drop["augmenter.p"].unique()) == [0.25, 0.4], "the default value is a value like the others"
    assert cells.loc[cells["augmenter"] == "none", "augmenter.p"].isna().all()
    assert (cells["backbone.layers"] == 4).all() and (cells["training.epochs"] == 2).all()
    assert sorted(cells["trials"]) == [9, 9, *[10] * 8] and (cells["planned"] == 10).all()
    by_hand = trials[trials["status"] == "done"].groupby("cell")["accuracy"].mean()
    assert cells["accuracy"].sort_index().equals(by_hand.sort_index().rename("accuracy"))
    assert {"augmenter.p", "training.lr", "fold", "repeat", "accuracy", "method"} <= set(trials)
    assert results.failures["reason"].tolist() == ["boom"]
    assert repr(results) == "<Results: 10 cells, 98 finished trials, 1 without a result>"
    assert "DropEdge (p=0.4)" in results._repr_html_()


def test_frames_are_the_readers_own(ledger: Path) -> None:
    results = augbench.load(ledger)
    results.cells.drop(columns="accuracy", inplace=True)
    results.trials["accuracy"] = 0
    assert results.cells["accuracy"].max() > 0.5 and results.trials["accuracy"].max() > 0.5


def test_differences_are_the_tables_own(ledger: Path) -> None:
    results = augbench.load(ledger)
    found = results.differences(to="none")
    assert len(found) == 8 and set(found["k"]) == {2, 10}
    row = found[(found["augmenter"] == "dropedge:p=0.4") & (found["k"] == 2)].iloc[0]
    trials = results.trials.query("k == 2 and status == 'done'").set_index(["fold", "repeat"])
    one, other = (trials.loc[trials["augmenter"] == name, "accuracy"] for name in ("dropedge:p=0.4", "none"))
    by_hand = paired(one.astype(float), other.astype(float))
    assert (row["n"], row["mean"], row["low"], row["high"]) == (9, by_hand.mean, by_hand.low, by_hand.high)
    assert (found["p_holm"] >= found["p"]).all() and row["reference"] in results.cells.index
    assert set(results.differences(to="dropedge", metric="macro_f1")["augmenter"]) == {*METHODS} - {"dropedge"}
    with pytest.raises(UserError, match="no cell has the augmenter 'dropnode' to compare with; there are: dropedge"):
        results.differences(to="dropnode")
    with pytest.raises(UserError, match="unknown metric 'f1'"):
        results.differences(metric="f1")


def test_a_table_of_ones_own(ledger: Path, tmp_path: Path) -> None:
    results = augbench.load(ledger)
    table = results.table(rows="augmenter.p", columns="k", where={"augmenter": "dropedge,dropedge:p=0.4"})
    assert table.to_frame().index.tolist() == ["0.25", "0.4"] and table.to_frame().shape == (2, 2)
    assert table.to_frame().loc["0.4"].iloc[0] == pytest.approx(
        results.cells.query("augmenter == 'dropedge:p=0.4' and k == 2")["accuracy"].iloc[0]
    )
    latex = table.to_latex(tmp_path / "deep" / "table.tex")
    assert r"\toprule" in latex and (tmp_path / "deep" / "table.tex").read_text() == latex
    assert "| 0.25 |" in table.to_markdown() and table.to_csv().startswith("table,row,")
    methods = results.table(labels={"none": "Plain"}, caption="Mine.", mark="significance")
    assert "Plain" in methods.to_latex(kind="differences", style="paper") and "Mine." in repr(methods)
    assert "<th>Plain</th>" in methods._repr_html_() and "9/10" in methods._repr_html_()
    with pytest.raises(UserError, match=r"unknown property of cells 'augmenter\.q'"):
        results.table(rows="augmenter.q")
    with pytest.raises(UserError, match=r"unknown keyword 'captoin'\. Did you mean: caption"):
        results.table(captoin="x")  # type: ignore[call-arg]


def test_names_in_a_notebook_are_no_markup(ledger: Path) -> None:
    text = augbench.load(ledger).table(labels={"none": "<script>"}, where={"k": 2})._repr_html_()
    assert "<script>" not in text and "&lt;script&gt;" in text


def test_pictures(ledger: Path, tmp_path: Path) -> None:
    picture = augbench.load(ledger).plot.label_rate()
    assert picture._repr_png_().startswith(b"\x89PNG")
    for kind in ("pdf", "svg", "png"):
        assert picture.save(tmp_path / f"rates.{kind}").stat().st_size > 1000
    for k in (None, 2):
        plots = augbench.load(ledger).plot
        for draw in (plots.differences, plots.heat_map):
            assert draw(k)._repr_png_().startswith(b"\x89PNG")
        with pytest.raises(UserError, match="says how long it took"):
            plots.cost(k)
    with pytest.raises(UserError, match="no finished trial has k=3; there are: 2, 10"):
        augbench.load(ledger).plot.differences(3)
    with pytest.raises(UserError, match="cannot be written as rates"):
        picture.save(tmp_path / "rates.gif")


def test_results_come_from_anything_and_from_several(ledger: Path, tools: ModuleType, tmp_path: Path) -> None:
    whole = augbench.load(ledger)
    state = tools.state(ledger)
    write_archive(state.records(), tmp_path / "trials.parquet")
    keys = sorted(state.cells)
    for name, own in (("one", keys[:4]), ("two", keys[3:])):
        tools.write_trials(tmp_path / name, state.only(own).records())
    expected = whole.trials.dropna(axis="columns", how="all")
    sources: list[tuple[Path, ...]] = [
        (Workspace(ledger).ledger,),
        (tmp_path / "trials.parquet",),
        (tmp_path / "one", tmp_path / "two"),
    ]
    for several in sources:
        found = augbench.load(*several).trials.dropna(axis="columns", how="all")
        assert found[expected.columns].equals(expected), several
    forged = [
        replace(record, accuracy=0.9) if isinstance(record, TrialRecord) and record.done else record
        for record in state.only(keys[:1]).records()
    ]
    tools.write_trials(tmp_path / "other", forged)
    with pytest.raises(UserError, match="accuracy is"):
        augbench.load(ledger, tmp_path / "other")
    with pytest.raises(UserError, match="there is no ledger in"):
        augbench.load(tmp_path / "nothing")
