"""The tables of all augmenters and of the controls: whole when asked for, else what was run of them."""

from __future__ import annotations

from types import ModuleType

from augmenters import AUGMENTERS
from bench.plan.grids import named_grid
from bench.results.frame import from_records
from tables.own_specs import CONTROLS, OWN_TABLES
from tables.selection import Index
from tables.specs import Coordinate
from tables.wanted import specs_for


def test_the_table_of_augmenters_has_every_built_in_method_and_no_control() -> None:
    built_in = {entry.name for entry in AUGMENTERS.entries().values() if entry.origin == "built in"}
    assert {row.augmenter for row in OWN_TABLES["augmenters"].rows} == built_in - set(CONTROLS)
    cells = named_grid("augmenters").cells
    assert {(cell.k, cell.backbone, cell.readout, cell.learner) for cell in cells} == {(10, "gcn", "mean", "gnn")}
    assert len(cells) == 6 * len(built_in - set(CONTROLS))


def test_the_table_of_controls_has_them_beside_gdm() -> None:
    rows = {row.augmenter for row in OWN_TABLES["controls"].rows}
    assert rows == {"none", *CONTROLS, "gdm-rand", "gdm-acc", "gdm-unc"}


def test_without_a_name_a_table_shows_what_was_run_and_every_cell_once(fake: ModuleType) -> None:
    places = [Coordinate("PROTEINS", 10, name) for name in ("none", "submix", "gdm-rand")]
    index = Index(from_records(fake.ledger(places)))
    (table,) = [spec for spec in specs_for(index, (), ["default"]) if spec.name in OWN_TABLES]
    assert table.name == "augmenters"  # gdm-rand stands in the table of controls too
    assert [row.augmenter for row in table.rows] == ["none", "gdm-rand", "submix"]
    assert [column.dataset for column in table.columns] == ["PROTEINS"]
    assert "custom" not in [spec.name for spec in specs_for(index, (), ["default"])]


def test_by_its_name_a_table_is_whole(fake: ModuleType) -> None:
    index = Index(from_records(fake.ledger([Coordinate("PROTEINS", 10, "submix")])))
    (table,) = specs_for(index, ["augmenters"], ["default"])
    assert table == OWN_TABLES["augmenters"]
