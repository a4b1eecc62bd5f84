"""A grid's size is its own, not what was planned of it."""

from __future__ import annotations

from tables.completeness import shares
from tables.specs import FIGURE, TABLES, full


def test_a_narrowed_run_is_counted_against_the_whole_grid() -> None:
    cells = TABLES["10labelrate"].coordinates()
    counts = {place: (30, 30) for place in cells if place.dataset != "REDDIT-MULTI-5K"}
    (share,) = shares(["10labelrate", "custom", "10labelrate"], counts)
    assert share.words == "grid 10labelrate: 40 of 48 cells complete; nothing of REDDIT-MULTI-5K"
    counts[cells[0]] = (29, 30)
    assert shares(["10labelrate"], counts)[0].complete == 39


def test_the_papers_grids_together_are_counted_against_all_its_cells() -> None:
    counts = {place: (30, 30) for place in full() if place.dataset != "DD"}
    found = shares([*TABLES, FIGURE.name, "custom"], counts)
    assert [share.grid for share in found] == ["full", *TABLES, FIGURE.name]
    assert found[0].words == f"grid full: {len(counts)} of 440 cells complete; nothing of DD"
    assert [share.grid for share in shares([*TABLES], counts)] == [*TABLES], "one of them was not run"


def test_a_whole_grid_is_complete() -> None:
    (share,) = shares(["full"], {place: (30, 30) for place in full()})
    assert share.words == f"grid full: {len(full())} of {len(full())} cells complete" and len(full()) == 440


def test_draws_added_for_precision_make_no_cell_incomplete() -> None:
    counts = {place: (30, 30) for place in full()} | {full()[0]: (47, 60), full()[1]: (29, 60)}
    assert shares(["full"], counts)[0].complete == 439
