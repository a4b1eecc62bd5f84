"""The table of learners: its rows, its one reference, and cells of several kinds in one table."""

from __future__ import annotations

from types import ModuleType

import pytest

from bench.results.frame import from_records
from bench.results.records import Record
from tables.grid import Request, fill
from tables.own_specs import LEARNERS_BY_K, OWN_TABLES, PLAIN_GCN, needed
from tables.selection import Index
from tables.specs import TABLES, Coordinate, full, generic, method_name
from tables.wanted import specs_for
from tables.wording import notes, shown

SPEC = OWN_TABLES["learners"]
SOME = [place for place in SPEC.coordinates() if place.dataset == "DD"]


@pytest.fixture
def index(fake: ModuleType) -> Index:
    return Index(from_records(fake.ledger(SOME)))


def test_rows_are_learners_plain_networks_and_the_papers_best() -> None:
    rows = SPEC.rows
    assert len(rows) == len({row.name for row in rows}) == 22
    assert {row.learner for row in rows if not row.backbone} == {
        *("majority", "size", "histogram", "statistics", "wl", "deepsets", "random-gin")
    }
    plain = {(row.backbone, row.readout) for row in rows if row.backbone and row.augmenter == "none"}
    assert plain >= {(b, r) for b in ("gcn", "gin", "sage", "gat") for r in ("mean", "add", "max")}
    assert [row.augmenter for row in rows if row.augmenter != "none"] == ["gdm-acc"]
    assert PLAIN_GCN in rows


def test_every_row_is_compared_with_plain_gcn(index: Index) -> None:
    grid = fill(index, SPEC, Request())
    column = next(i for i, c in enumerate(SPEC.columns) if c.dataset == "DD")
    for line in grid.lines:
        entry = line.entries[column]
        assert entry.is_reference == (line.row == PLAIN_GCN)
        assert (entry.difference is None) == entry.is_reference
        assert (shown(entry, "differences", "").main == "ref.") == entry.is_reference
    assert any("the row GCN Mean" in note for note in notes(grid, "differences"))


def test_a_ledger_with_learners_prints_their_table_and_no_other(index: Index, fake: ModuleType) -> None:
    names = [spec.name for spec in specs_for(index, (), ["default"])]
    assert "learners" in names and "custom" not in names
    assert [s.name for s in specs_for(index, ["learners"], ["default"])] == ["learners"]
    paper = Index(from_records(fake.ledger(TABLES["10labelrate"].coordinates())))
    assert "learners" not in [spec.name for spec in specs_for(paper, (), ["default"])]


def test_over_the_label_rates_they_are_a_table_of_their_own(fake: ModuleType) -> None:
    places = [p for p in LEARNERS_BY_K.coordinates() if p.dataset in ("DD", "NCI1") and p.k in (2, 5, 10)]
    index = Index(from_records(fake.ledger(places)))
    assert "learners_by_k" in [spec.name for spec in specs_for(index, (), ["default"])]
    (spec,) = specs_for(index, ["learners_by_k"], ["default"])
    assert spec.spans() == [("D&D", 3), ("NCI1", 3)] and set(spec.coordinates()) == set(places)
    lines = {line.name: line for line in fill(index, spec, Request()).lines}
    assert all(entry.is_reference for entry in lines["GCN"].entries)
    assert all(entry.difference is not None for name in ("WL", "GIN", "GDM Acc") for entry in lines[name].entries)
    networks = Index(from_records(fake.ledger([p for p in places if p.backbone == "gin"])))
    assert [spec.name for spec in specs_for(networks, (), ["default"])] == ["learners", "custom"]
    assert len(needed("learners_by_k")) == 6 * 6 * 12


def test_pool_prints_plain_training_where_it_was_run(fake: ModuleType) -> None:
    spec = TABLES["Pool"]
    assert len(full()) == 440 and len(needed("Pool")) == 72
    without = fill(Index(from_records(fake.ledger(spec.coordinates()))), spec, Request())
    assert [line.name for line in without.lines] == [row.name for row in spec.rows]
    grid = fill(Index(from_records(fake.ledger(spec.needed()))), spec, Request())
    assert [line.name for line in grid.lines][:4] == ["GCN Mean", "GCN Add", "GCN Max", "Acc Mean"]
    assert all(entry.difference is not None for line in grid.groups[1] for entry in line.entries)


def test_engines_may_differ_between_models_and_not_within_one(fake: ModuleType) -> None:
    from bench.registry import UserError
    from tables.selection import Pick

    def lines(place: Coordinate, **versions: object) -> list[Record]:
        made: list[Record] = fake.ledger([place], versions={**fake.cell(place).cell.versions, **versions})
        return made

    wl, gcn, pool = (Coordinate("DD", 10, "none", *m) for m in (("", "", "wl"), ("gcn",), ("gcn", "diffpool")))
    made = [
        *lines(wl, engine="none", **{"scikit-learn": "1.9", "engine-version": None}),
        *lines(gcn, engine="fast"),
        *lines(pool, engine="reference"),
    ]
    held = Index(from_records(made))
    assert not held.check_agreement(held.cells, Pick())
    other = Coordinate("NCI1", 10, "none")
    held = Index(from_records([*made, *lines(other, engine="reference")]))
    with pytest.raises(UserError, match="different engine of gnn gcn mean"):
        held.check_agreement(held.cells, Pick())


@pytest.mark.parametrize(
    ("augmenter", "name"), [("none", "wl"), ("gdm-acc", "GDM Acc (wl)"), ("mine:p=1", "mine (p=1, wl)")]
)
def test_names_of_methods_without_a_network(augmenter: str, name: str) -> None:
    assert method_name(augmenter, "", "", "wl") == name


def test_any_cells_give_a_table_with_their_learners() -> None:
    cells = [Coordinate("DD", 5, "none"), *(Coordinate("DD", 5, "none", "", "", one) for one in ("wl", "size"))]
    (spec,) = generic("custom", cells, "caption")
    assert [row.name for row in spec.rows] == ["GCN", "size", "wl"]
    assert set(spec.coordinates()) == set(cells)
