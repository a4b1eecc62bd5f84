"""The specifications are the paper's tables, and the list of cells to run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.registry import UserError
from tables import specs
from tables.specs import Coordinate


def test_full_is_the_union_of_all_and_has_440_cells() -> None:
    assert len(specs.full()) == 440
    assert len(set(specs.full())) == 440
    assert set(specs.full()) == {c for name in specs.NAMES for c in specs.coordinates(name)}
    assert specs.coordinates("full") == specs.full()


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("10labelrate", 8, 6), ("Match", 9, 8), ("GAE", 5, 8), ("GNN_Baseline", 6, 8), ("Pool", 6, 8)],
)
def test_tables_have_the_papers_shape(name: str, rows: int, columns: int) -> None:
    spec = specs.TABLES[name]
    assert (len(spec.rows), len(spec.columns)) == (rows, columns)
    assert len(set(spec.coordinates())) == rows * columns


def test_figure_has_six_panels_six_rates_eight_methods() -> None:
    assert len(set(specs.coordinates("main_exp"))) == 6 * 6 * 8
    assert next(title for _, title in specs.FIGURE.panels) == "D&D"


def test_ablations_name_their_settings_canonically() -> None:
    labels = {c.augmenter for c in specs.full()}
    assert {"gdm-acc:without=low", "gdm-unc:without=high", "gdm-unc:encoder=vgsae", "gdm-rand"} <= labels
    assert {"without", "encoder"} == specs.DEFINING_SETTINGS


def test_unknown_name_is_told_what_is_near() -> None:
    with pytest.raises(UserError, match=r"unknown table 'Matsch'\. Did you mean: Match"):
        specs.coordinates("Matsch")


def test_spans_join_neighbors() -> None:
    assert specs.TABLES["Match"].spans() == [("D&D", 4), ("IMDB-Multi", 4)]
    assert specs.TABLES["10labelrate"].spans() == [("", 6)]


def test_generic_tables_hold_every_cell_and_are_cut_when_wide() -> None:
    cells = [Coordinate(f"set{i}", k, a) for i in range(3) for k in (1, 2, 3) for a in ("none", "mine:p=0.1")]
    cells.append(Coordinate("set0", 1, "none", "gin", "add"))
    made = list(specs.generic("custom", cells, "caption"))
    assert [spec.name for spec in made] == ["custom-1", "custom-2"]
    assert set(cells) <= {c for spec in made for c in spec.coordinates()}
    assert [row.name for row in made[0].rows] == ["GCN", "mine (p=0.1)", "none (GIN, add)"]
    with pytest.raises(UserError, match="no cell for the table 'custom'"):
        list(specs.generic("custom", [], "caption"))


@pytest.mark.parametrize(
    ("label", "backbone", "readout", "name"),
    [
        ("none", "gcn", "mean", "GCN"),
        ("none", "gin", "mean", "GIN"),
        ("gdm-acc", "gin", "mean", "GDM Acc (GIN)"),
        ("mine:p=0.1,q=2", "gin:layers=2", "max", "mine (p=0.1, q=2, GIN (layers=2), max)"),
        ("none", "gcn:layers=2,width=32", "mean", "GCN (layers=2, width=32)"),
        ("dropedge:p=0.4+maskattr", "gcn", "mean", "DropEdge (p=0.4) + maskattr"),
        ("mine.methods:Mine:p=1", "gcn", "mean", "Mine (p=1)"),
        ("gdm-rand", "gcn", "add", "GDM Rand (add)"),
        ("duplicate", "gcn", "mean", "duplicate"),
    ],
)
def test_method_names(label: str, backbone: str, readout: str, name: str) -> None:
    assert specs.method_name(label, backbone, readout) == name


def test_reading_the_specifications_imports_nothing_heavy() -> None:
    code = (
        "import sys, tables.specs, tables.paper; print([m for m in ('pandas', 'numpy', 'torch') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
