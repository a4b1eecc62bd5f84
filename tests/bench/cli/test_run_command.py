"""`bench run` from its words: which grid they mean, what they change, and a first run in a new place."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench.cli import app as cli
from bench.plan.asked import adjusted, chosen_grid
from bench.plan.grids import Grid, named_grid, product
from bench.registry import UserError

NO_AXES: dict[str, list[object]] = {"datasets": [], "augmenters": [], "k": [], "backbones": [], "readouts": []}


def test_without_words_it_is_quick() -> None:
    assert chosen_grid(None, NO_AXES) == named_grid("quick")


def test_axes_alone_make_a_grid_and_beside_a_grid_they_narrow_it() -> None:
    axes = {**NO_AXES, "datasets": ["DD"], "k": [2, 3]}
    assert chosen_grid(None, axes) == Grid("custom", product(["DD"], k=[2, 3]))
    assert {(cell.dataset, cell.k) for cell in chosen_grid("Match", axes).cells} == {("DD", 2), ("DD", 3)}


def test_axes_need_a_dataset() -> None:
    with pytest.raises(UserError, match="these axes need a dataset; add -d NAME, or narrow a grid"):
        chosen_grid(None, {**NO_AXES, "augmenters": ["none"]})


def test_what_the_command_line_says_counts_more_than_the_grid() -> None:
    grid = Grid("g", product(["DD"]), folds=3, training={"lr": 0.1})
    changed = adjusted(grid, {"folds": 2, "repeats": None, "features": "degree"}, epochs=5)
    assert (changed.folds, changed.repeats, changed.features) == (2, grid.repeats, "degree")
    assert changed.training == {"lr": 0.1, "epochs": 5}


def bench(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def test_a_dry_run_through_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "-d", "synthetic", "-a", "none", "-k", "2,3", "--dry-run", "--no-probe", "--data", str(tmp_path)]
    assert bench(monkeypatch, *words) == 0
    assert "2 cells, 60 trials" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_first_run_in_a_new_place_says_nothing_but_its_own_words(tools: ModuleType, tmp_path: Path) -> None:
    """MLflow makes its tables then, and would tell of each step."""
    words = ["-d", "synthetic:graphs=60", "-a", "none", "-k", "2", "--folds", "1", "--repeats", "1", "--epochs", "2"]
    process = tools.start(tmp_path / "runs", [*words, "--jobs", "1"])
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    assert out.startswith("grid custom: 1 cell, 1 trial\n")
    for noise in ("INFO", "alembic", "Warning", "Traceback", "telemetry"):
        assert noise not in out
    assert (tmp_path / "runs" / "mlflow.db").is_file()
