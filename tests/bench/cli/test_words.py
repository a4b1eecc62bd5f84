"""Names in the shell, what `bench list` says of each, and the words for one and for many."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.cli import completion
from bench.cli.app import app
from bench.cli.catalogue import every_name, named
from bench.words import counted


def test_one_is_not_many() -> None:
    assert (counted(1, "cell"), counted(2, "cell"), counted(0, "trial")) == ("1 cell", "2 cells", "0 trials")


def test_the_shell_offers_the_names_that_fit() -> None:
    assert completion.augmenters("gdm-u") == ["gdm-unc"]
    assert completion.backbones("g") == ["gat", "gcn", "gin"]
    assert "mean+max" in completion.readouts("mean") and "wl" in completion.learners("")
    assert completion.datasets("IMDB") == ["IMDB-BINARY", "IMDB-MULTI"]
    assert completion.grids("qu") == ["quick"] and "10labelrate" in completion.grids("10")


@pytest.mark.parametrize(("name", "says"), [("quick", "20 cells, 60 trials"), ("10labelrate", "IMDB-MULTI")])
def test_a_grid_says_what_it_holds(name: str, says: str) -> None:
    done = CliRunner().invoke(app, ["list", name])
    assert done.exit_code == 0 and says in done.stdout and f"{name} (grid)" in done.stdout


def test_a_dataset_of_ones_own_has_a_name_too(tiny_root: Path) -> None:
    done = CliRunner().invoke(app, ["list", "TINY"])
    assert done.exit_code == 0 and "TINY (dataset): in your data root: 40 graphs, 2 classes" in done.stdout
    assert "splits       stratified" in done.stdout and "metric       accuracy" in done.stdout
    assert "TINY" in CliRunner().invoke(app, ["list"]).stdout and completion.datasets("TI") == ["TINY"]


def test_the_version_is_said() -> None:
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("augbench ")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("quick", ["quick (preset): 100 epochs", "quick (grid): every method"]),
        ("10labelrate", ["10labelrate (table): Accuracy on 6", "columns      Proteins; NCI1"]),
        ("main_exp", ["(figure)", "D&D k=2, 3, 5, 10, 25, 50"]),
        ("paper", ["head         relu", "has none: degree-onehot"]),
        ("roc_auc", ["roc_auc (metric, built in): area under"]),
        ("dropedge", ["dropedge (augmenter, built in)", "default 0.25"]),
    ],
)
def test_a_name_says_all_that_it_stands_for(name: str, says: list[str]) -> None:
    done = CliRunner().invoke(app, ["list", name])
    assert done.exit_code == 0 and all(words in done.stdout for words in says), done.stdout


def test_every_name_on_the_list_can_be_asked_for() -> None:
    shown = CliRunner().invoke(app, ["list"], env={"COLUMNS": "200"}).stdout
    for one in every_name():
        assert f" {one.name} " in shown and one.summary
        assert (one.kind, one.name) in {(found.kind, found.name) for found in named(one.name)}
        assert all(line.strip() for line in one.lines())
