"""Grids: those of the paper have the sizes its tables say, a user's own is read with the line of every mistake."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.plan.grid_files import read_grid
from bench.plan.grids import FOLDS, REPEATS, Grid, named_grid, narrowed, product
from bench.registry import UserError
from tables.own_specs import EVERY_NAME
from tables.specs import NAMES, TABLES, coordinates


def test_full_is_the_union_of_the_tables_440_cells_13200_trials() -> None:
    full = named_grid("full")
    assert len(full.cells) == len(set(full.cells)) == 440
    assert len(full.cells) * full.folds * full.repeats == 13_200
    assert set(full.cells) == {cell for name in NAMES for cell in coordinates(name)}


@pytest.mark.parametrize("name", list(TABLES))
def test_a_tables_grid_has_a_cell_for_each_of_its_numbers(name: str) -> None:
    spec = TABLES[name]
    grid = named_grid(name)
    assert len(grid.cells) == (len(spec.rows) + len(spec.beside)) * len(spec.columns)
    assert set(spec.coordinates()) <= set(grid.cells)
    assert (grid.folds, grid.repeats) == (FOLDS, REPEATS)


def test_quick_runs_on_built_in_data_alone() -> None:
    assert {cell.dataset for cell in named_grid("quick").cells} == {"digits", "synthetic"}


def test_axes_narrow_a_grid() -> None:
    grid = narrowed(named_grid("full"), {"datasets": ["DD", "NCI1"], "k": [2], "augmenters": [], "backbones": ["gcn"]})
    assert {(cell.dataset, cell.k, cell.backbone) for cell in grid.cells} == {("DD", 2, "gcn"), ("NCI1", 2, "gcn")}


def test_narrowing_to_what_a_grid_lacks_names_what_it_has() -> None:
    with pytest.raises(UserError, match="has no k 4; it has: 2, 3, 5, 10, 25, 50"):
        narrowed(named_grid("main_exp"), {"k": [4]})
    with pytest.raises(UserError, match="no cell of the grid full matches all of these axes"):
        narrowed(named_grid("full"), {"datasets": ["NCI1"], "readouts": ["max"]})


def test_readouts_are_run_beside_plain_training_with_the_same_one() -> None:
    pool = named_grid("Pool")
    assert {cell.readout for cell in pool.cells if cell.augmenter == "none"} == {"mean", "add", "max"}
    assert len(pool.cells) == 72


def test_learners_without_a_network_have_neither_backbone_nor_readout() -> None:
    cells = product(["digits"], ["none"], [2], ["gcn", "gin"], ["mean", "max"], ["wl", "gnn", "size:c=2"])
    assert [(c.learner, c.backbone, c.readout) for c in cells] == [
        ("wl", "", ""),
        ("gnn", "gcn", "mean"),
        ("gnn", "gcn", "max"),
        ("gnn", "gin", "mean"),
        ("gnn", "gin", "max"),
        ("size:c=2", "", ""),
    ]


def test_the_grid_of_learners_can_be_narrowed_to_some() -> None:
    grid = narrowed(named_grid("learners"), {"learners": ["wl", "size"], "datasets": ["DD"]})
    assert [str(cell) for cell in grid.cells] == ["DD k=10 none size", "DD k=10 none wl"]
    with pytest.raises(UserError, match="has no backbone gcm; it has: gat, gcn, gin, sage"):
        narrowed(named_grid("learners"), {"backbones": ["gcm"]})


def test_a_grid_file_names_learners(tmp_path: Path) -> None:
    grid = read_grid(write(tmp_path, 'datasets = "digits"\nlearners = ["wl:h=2", "gnn"]'), tmp_path)
    assert [cell.learner for cell in grid.cells] == ["wl:h=2", "gnn"]
    with pytest.raises(UserError, match=r"line 2: learners: unknown learner 'wll'\. Did you mean: wl"):
        read_grid(write(tmp_path, 'datasets = "digits"\nlearners = ["wll"]'), tmp_path)


def test_an_unknown_grid_offers_the_nearest() -> None:
    with pytest.raises(UserError, match="Did you mean: main_exp"):
        named_grid("main-exp")


def test_folds_and_repeats_have_bounds() -> None:
    with pytest.raises(UserError, match="folds=11"):
        Grid("x", product(["digits"]), folds=11)
    with pytest.raises(UserError, match="repeats=0"):
        Grid("x", product(["digits"]), repeats=0)


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_grid_file_gives_products_of_blocks_over_shared_axes(tmp_path: Path) -> None:
    text = """
        k = [2, 10]
        folds = 3
        [[block]]
        datasets = "synthetic"
        augmenters = ["none", "dropedge:p=0.1"]
        [[block]]
        datasets = ["digits"]
        backbones = ["gin"]
        k = 5
        [training]
        epochs = 7
    """
    grid = read_grid(write(tmp_path, text), tmp_path)
    one = product(["synthetic"], ["none", "dropedge:p=0.1"], [2, 10])
    assert grid == Grid("mine", one + product(["digits"], k=[5], backbones=["gin"]), folds=3, training={"epochs": 7})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('datasets = ["digits"]\n\nkk = 2', "line 3: kk: unknown key 'kk'. Did you mean: k?"),
        ('datasets = ["digits"]\nk = [2,\n     0]', "line 3: k: 0 is not a label budget"),
        ('datasets = ["digits"]\nk = "2"', "line 2: k: takes whole numbers, not '2'"),
        ('datasets = ["digits"]\nk = [true]', "line 2: k: takes whole numbers, not True"),
        (
            'datasets = [\n "digits",\n "PROTINES"]',
            "line 3: datasets: unknown dataset 'PROTINES'. Did you mean: PROTEINS",
        ),
        ("datasets = []", "line 1: datasets: is empty"),
        ('augmenters = ["none"]', "no datasets; add a line such as"),
        ('datasets="digits"\naugmenters = "dropegde"', "line 2: augmenters: unknown augmenter 'dropegde'"),
        ('datasets="digits"\naugmenters = "gdm-acc:eps=2"', "line 2: augmenters: gdm-acc: eps=2 is not valid"),
        ('datasets="digits"\nbackbones = "gcm"', "line 2: backbones: unknown backbone 'gcm'"),
        ('datasets="digits"\nfolds = 11', "line 2: folds: folds=11 is not valid"),
        ('datasets="digits"\npreset = "papper"', "line 2: preset: unknown preset 'papper'"),
        ('datasets="digits"\nfeatures = "degre"', "line 2: features: unknown features 'degre'"),
        ('datasets="digits"\n[training]\nepochs = 0', "line 3: epochs: training: epochs=0 is not valid"),
        ('datasets="digits"\n[training]\nepoch = 5', "line 3: epoch: unknown training setting 'epoch'"),
        ('datasets="digits"\ntraining = 3', "line 2: training: must be a [training] table"),
        ('[block]\ndatasets="digits"', "line 1: block: must be written as [[block]] tables"),
        ('[[block]]\ndatasets="digits"\n[[block]]\nfolds=3', "line 4: folds: unknown key 'folds'"),
        (
            '[[block]]\ndatasets="digits"\nk=2\n[[block]]\ndatasets="digits"\nk=-1',
            "line 6: k: -1 is not a label budget",
        ),
        ("datasets = [\n", "is not valid TOML"),
        ("datasets = digits", "line 1"),
    ],
)
def test_a_mistake_in_a_grid_file_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        read_grid(write(tmp_path, text), tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_grid_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no grid file"):
        named_grid(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b'datasets = ["\xe9"]')
    with pytest.raises(UserError, match="UTF-8"):
        named_grid(str(tmp_path / "latin.toml"))


def test_the_documented_grid_file_is_read_as_it_is_told(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "grids.md"
    (text,) = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    grid = read_grid(write(tmp_path, text), tmp_path)
    assert (grid.name, grid.folds, grid.repeats, grid.training) == ("sensitivity", 10, 3, {"epochs": 400})
    assert len(grid.cells) == 2 * 2 * (3 + 2 * 2 * 2)


def test_the_documented_sizes_are_those_of_the_grids() -> None:
    text = (Path(__file__).parents[3] / "docs" / "grids.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `(\w+)` \| (\d+) \| ([\d,]+) \|", text)
    assert {name for name, *_ in rows} == {"quick", "augmenters", "full", *EVERY_NAME}
    for name, cells, trials in rows:
        grid = named_grid(name)
        assert (len(grid.cells), len(grid.cells) * grid.folds * grid.repeats) == (
            int(cells),
            int(trials.replace(",", "")),
        )


def test_the_papers_grids_are_to_the_letter_and_others_standard() -> None:
    presets = {name: named_grid(name).preset for name in ("full", *EVERY_NAME, "quick")}
    papers = {name for name, preset in presets.items() if preset == "paper"}
    assert papers == {"full", *NAMES}
    assert presets["learners"] == presets["augmenters"] == "standard" and presets["quick"] == "quick"
