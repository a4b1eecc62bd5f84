"""What `bench status --grid` says that a ledger lacks of a whole grid."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from typer.testing import CliRunner

from bench.cli.app import app
from bench.cli.grid_status import GridShare, Holding, missing_lines, print_grid_status, wrapped_line
from bench.execution.request import RunRequest
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord, Record

GRID = Grid(
    "mine",
    product(["synthetic"], ["none", "dropedge", "dropedge:p=0.25", "dropedge:p=0.4"], [2, 5]),
    folds=2,
    repeats=1,
    preset="quick",
)


def said(state: LedgerState, grid: Grid, data: Path) -> list[str]:
    out = io.StringIO()
    print_grid_status(state, grid, data, Console(file=out, width=80))
    return out.getvalue().splitlines()


@pytest.fixture
def half(tmp_path: Path, fake: ModuleType) -> LedgerState:
    """Of eight cells: two complete, one with half of its trials, and another one of another preset."""
    narrow = replace(GRID, cells=tuple(dict.fromkeys(c for c in GRID.cells if c.augmenter in ("none", "dropedge"))))
    cells = Planner(tmp_path, RunRequest.engine).plan(narrow).cells
    other = Planner(tmp_path, RunRequest.engine).plan(replace(narrow, preset="standard")).cells[0]
    records: list[Record] = [CellRecord(cell.key, cell) for cell in (*cells, other)]
    records += [fake.trial(cell.key, fold) for cell in (*cells[:2], other) for fold in (0, 1)]
    return LedgerState.of([*records, fake.trial(cells[2].key, 0)])


def test_missing_cells_are_counted_against_the_whole_grid(half: LedgerState, tmp_path: Path) -> None:
    assert said(half, GRID, tmp_path) == [
        "grid mine, preset quick: 3 of 8 cells, missing:",
        "  synthetic: 5 of 8 cells",
        "    k = 2, 5; gcn mean: dropedge:p=0.4",
        "    k = 5; gcn mean: dropedge, dropedge:p=0.25",
        "    k = 5; gcn mean: none, 1 of 2 trials",
        "with --preset standard: 1 of 8 cells",
    ]


def test_nothing_and_one_thing_missing(half: LedgerState, tmp_path: Path) -> None:
    one = replace(GRID, cells=GRID.cells[:1])
    assert said(half, one, tmp_path)[0] == "grid mine, preset quick: 1 of 1 cell, nothing is missing"
    assert said(LedgerState(), one, tmp_path)[1:] == ["  synthetic: its only cell"]
    assert said(half, replace(one, features="degree"), tmp_path)[0].startswith("grid mine, preset quick: 0 of 1 cell")


def test_what_other_versions_measured_is_told(half: LedgerState, tmp_path: Path) -> None:
    for key, cell in half.cells.items():
        half.cells[key] = replace(cell, versions={**cell.versions, "torch": "1.13"})
    assert "measured with other versions than those here: a run measures them anew" in said(half, GRID, tmp_path)[-2]


def test_long_lines_are_wrapped_between_names(tmp_path: Path) -> None:
    methods = ["none", *(f"dropedge:p=0.{step}" for step in range(1, 10))]
    lines = said(LedgerState(), replace(GRID, cells=product(["PROTEINS", "synthetic"], methods, [10])), tmp_path)
    assert lines[1:] == ["  PROTEINS: all 10 cells", "  synthetic: all 10 cells"]
    begun = GridShare(GRID, {at: Holding(2 * (at.k == 2), False) for at in product(["synthetic"], methods, [2, 10])})
    (line,) = missing_lines(begun)[1:]
    wrapped = wrapped_line(line, 80)
    assert max(map(len, wrapped)) <= 80 and len(wrapped) == 3 and wrapped[1].startswith(" " * 6 + "dropedge:p=0.")


def test_a_preset_needs_a_grid() -> None:
    done = CliRunner().invoke(app, ["status", "--preset", "quick"])
    assert "add --grid NAME" in str(done.exception)
