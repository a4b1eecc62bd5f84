"""Settings over a grid, methods beside its own, and the table that shows the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.plan.changes import (
    Changes,
    changed_grid,
    changed_spec,
    grid_pick,
    own_table,
    read_labels,
    read_settings,
    training_picks,
)
from bench.plan.grids import Grid, named_grid, product
from bench.plan.planner import Planner
from bench.registry import UserError
from tables.specs import TABLES, Coordinate, Row


def grid(*augmenters: str, **axes: list[str]) -> Grid:
    return Grid("small", product(["digits"], augmenters, [2], **axes))


def methods(changed: Grid) -> list[str]:
    return [cell.augmenter for cell in changed.cells]


def test_settings_are_read_with_one_value_or_several() -> None:
    assert read_settings(["training.lr=0.001,backbone.layers=2", "augmenter.p=0.1|0.4", "epochs=5"]) == {
        "training.lr": ("0.001",),
        "backbone.layers": ("2",),
        "augmenter.p": ("0.1", "0.4"),
        "training.epochs": ("5",),
    }
    for wrong in ("lr", "=3", "augmenter.p=", "augmenter.p=1|"):
        with pytest.raises(UserError, match=r"write part\.setting=value"):
            read_settings([wrong])
    with pytest.raises(UserError, match="given twice"):
        read_settings(["lr=1", "training.lr=2"])


def test_a_setting_changes_what_has_it_and_nothing_else() -> None:
    before = grid("none", "dropedge", "gdm-unc:eps=0.2")
    assert methods(changed_grid(before, Changes({"augmenter.p": ("0.4",)}))) == [
        "none",
        "dropedge:p=0.4",
        "gdm-unc:eps=0.2",
    ]
    assert methods(changed_grid(before, Changes({"dropedge.p": ("0.4",)})))[1] == "dropedge:p=0.4"
    layers = changed_grid(grid("none", backbones=["gcn", "gin"]), Changes({"backbone.layers": ("2",)}))
    assert [cell.backbone for cell in layers.cells] == ["gcn:layers=2", "gin:layers=2"]
    composed = changed_grid(grid("dropedge+maskattr"), Changes({"dropedge.p": ("0.4",)}))
    assert methods(composed) == ["dropedge:p=0.4+maskattr"]


def test_the_default_value_is_a_value_like_the_others() -> None:
    several = changed_grid(grid("none", "dropedge"), Changes({"augmenter.p": ("0.1", "0.25", "0.4")}))
    assert methods(several) == ["none", "dropedge:p=0.1", "dropedge", "dropedge:p=0.4"]


def test_training_with_several_values_gives_a_cell_for_each(tmp_path: Path) -> None:
    one = changed_grid(grid("none"), Changes({"training.lr": ("0.001",)}))
    assert one.training == {"lr": "0.001"} and one.cells == grid("none").cells
    several = changed_grid(grid("none"), Changes({"training.lr": ("0.001", "1e-2")}))
    assert [cell.where for cell in several.cells] == [(("lr", "0.001"),), (("lr", "0.01"),)]
    planned = Planner(tmp_path).plan(several).cells
    assert [cell.training.lr for cell in planned] == [0.001, 0.01]
    (usual,) = Planner(tmp_path).plan(grid("none")).cells
    assert planned[1].key == usual.key, "the default written out is the default"


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("augmenter.pp", "Did you mean: p"),
        ("augmentr.p", "Did you mean: augmenter"),
        ("training.lrr", "Did you mean: lr"),
        ("readout.size", "no readout here has any setting"),
        ("augmenter.p", "p=x is not valid"),
        ("gin.layers", "unknown part 'gin'"),
        ("rubbish", "unknown setting 'rubbish'"),
    ],
)
def test_a_wrong_setting_names_what_is_near(setting: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        changed_grid(grid("none", "dropedge"), Changes({setting: ("x",)}))


def test_added_methods_stand_beside_every_model_of_a_grid() -> None:
    before = grid("none", backbones=["gcn", "gin"])
    after = changed_grid(before, Changes(added=("dropedge", "wl")))
    beside = set(after.cells) - set(before.cells)
    assert beside == {
        Coordinate("digits", 2, "dropedge", "gcn"),
        Coordinate("digits", 2, "dropedge", "gin"),
        Coordinate("digits", 2, "none", "", "", "wl"),
    }
    with pytest.raises(UserError, match=r"unknown augmenter 'dropegde'\. Did you mean: dropedge"):
        changed_grid(before, Changes(added=("dropegde",)))


@pytest.mark.parametrize("name", list(TABLES))
def test_a_changed_table_lists_what_the_changed_grid_runs(name: str) -> None:
    changes = Changes({"backbone.layers": ("2",)}, ("perturbedge",))
    ran = set(changed_grid(named_grid(name), changes).cells)
    printed = changed_spec(TABLES[name], changes)
    assert set(printed.needed()) == ran
    assert {row.backbone for row in printed.rows} <= {f"{one}:layers=2" for one in ("gcn", "gin", "gat")}


def test_an_added_row_joins_the_group_of_its_model() -> None:
    main = changed_spec(TABLES["10labelrate"], Changes(added=("perturbedge",)))
    assert main.groups[0][-1] == Row("perturbedge", "perturbedge")
    models = changed_spec(TABLES["GNN_Baseline"], Changes(added=("perturbedge",)))
    assert [group[-1].backbone for group in models.groups] == ["gin", "gat"]
    ablation = changed_spec(TABLES["GAE"], Changes(added=("perturbedge",)))
    assert len(ablation.groups) == len(TABLES["GAE"].groups) + 1
    with pytest.raises(UserError, match=r"show several with --rows augmenter\.p"):
        changed_spec(TABLES["GAE"], Changes({"augmenter.p": ("1", "2")}))


def test_labels_and_picks_are_read() -> None:
    assert read_labels(["hidenodes=Hide", "dropedge:p=0.4=Drop"]) == {"hidenodes": "Hide", "dropedge:p=0.4": "Drop"}
    with pytest.raises(UserError, match="write NAME=LABEL"):
        read_labels(["hidenodes"])
    assert training_picks({"training.lr": ("1e-3",), "backbone.layers": ("2",)}) == {"lr": "0.001"}


QUESTION = """
datasets = ["digits"]
augmenters = ["dropedge"]
k = [2, 5]
preset = "quick"

[set]
"augmenter.p" = [0.25, 0.1]
training.lr = [0.01, 0.001]

[table]
rows = "augmenter.p"
columns = ["training.lr", "k"]
name = "how many"
caption = "{measure} of edges."

[labels]
digits = "Digits"
"augmenter.p" = "drop"
"""


def test_a_grid_file_says_what_is_run_and_what_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "question.toml"
    path.write_text(QUESTION, encoding="utf-8")
    made = named_grid(str(path), tmp_path)
    spec = own_table(made, tmp_path)
    assert set(spec.coordinates()) == set(made.cells) and len(made.cells) == 8
    assert (spec.name, spec.corner) == ("how-many", "drop")
    assert [row.name for row in spec.rows] == ["0.1", "0.25"]
    assert [(column.span, column.head) for column in spec.columns][:2] == [("lr=0.001", "k=2"), ("lr=0.001", "k=5")]
    assert spec.at(spec.rows[1], spec.columns[2]) == Coordinate("digits", 2, "dropedge", where=(("lr", "0.01"),))
    picked = grid_pick(made)
    assert picked.items() >= {"epochs": "100", "weight_decay": "0", "select": "last"}.items() and "lr" not in picked


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('rows = "augmenter.p"', "rows"),
        ('"augmenter.p" = [0.25, 0.1]', "augmenter.p"),
        ('caption = "{measure} of edges."', "caption"),
    ],
)
def test_a_mistake_in_a_question_is_told_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "question.toml"
    wrong = {"rows": "rows = 3", "augmenter.p": '"augmenter.q" = 3', "caption": "captoin = 'x'"}[words]
    path.write_text(QUESTION.replace(line, wrong), encoding="utf-8")
    with pytest.raises(UserError, match=r"question.toml line \d+: "):
        named_grid(str(path), tmp_path)


def test_a_grid_without_a_table_has_the_usual_one(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text('datasets = ["digits"]\naugmenters = ["none"]\nbackbones = ["gcn", "gin"]\n', encoding="utf-8")
    spec = own_table(named_grid(str(path), tmp_path), tmp_path)
    assert [row.name for row in spec.rows] == ["no augmentation, GCN", "no augmentation, GIN"]
    assert grid_pick(named_grid(str(path), tmp_path)) == {"preset": "standard"}
