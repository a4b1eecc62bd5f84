"""Figures: what is drawn, in which formats, and that names draw as they are."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

from bench.registry import UserError
from bench.results.frame import from_records
from tables import figures, style
from tables.grid import Request
from tables.own_specs import LEARNERS_BY_K
from tables.publishing import all_figures
from tables.selection import Index
from tables.specs import FIGURE, Coordinate

HOSTILE = "_$x^{$ <b>&\n\\alpha"


@pytest.fixture(scope="module")
def index(fake: ModuleType) -> Index:
    def value(place: Coordinate, fold: int, repeat: int) -> float | None:
        return None if (place.dataset, place.k, fold) == ("NCI1", 5, 1) else fake.accuracy(place, fold, repeat)

    others = [Coordinate(HOSTILE, k, name) for k in (1, 4) for name in ("none", "duplicate", HOSTILE)]
    return Index(from_records(fake.ledger(FIGURE.coordinates(), value=value) + fake.ledger(others)))


def test_points_are_the_means_in_percent(index: Index, fake: ModuleType) -> None:
    data = figures.curves(index, Request())
    assert data.datasets == [name for name, _ in FIGURE.panels]
    assert list(data.methods) == [row.name for row in FIGURE.rows]
    assert len(data.points) == 288
    place = Coordinate("PROTEINS", 10, "gdm-acc")
    values = [fake.accuracy(place, f, r) for f in range(10) for r in range(3)]
    chosen = data.points.query("dataset == 'PROTEINS' and k == 10 and method == 'GDM Acc'")["value"].item()
    assert chosen == pytest.approx(100 * sum(values) / 30)


def test_all_formats_are_written_and_repeat_exactly(index: Index, tmp_path: Path) -> None:
    data = figures.curves(index, Request(), datasets=["NCI1", "DD"])
    figure = figures.label_rate_figure(data)
    assert [ax.get_title() for ax in figure.axes if ax.lines] == ["D&D", "NCI1"]
    paths = style.save(figure, tmp_path / "a", "main_exp")
    starts = {path.suffix: path.read_bytes()[:5] for path in paths}
    assert starts == {".pdf": b"%PDF-", ".svg": b"<?xml", ".png": b"\x89PNG\r"}
    (again,) = style.save(figures.label_rate_figure(data), tmp_path / "b", "main_exp")[1:2]
    assert again.read_bytes() == (tmp_path / "a" / "main_exp.svg").read_bytes()


def test_missing_trials_are_hollow_and_strict_refuses(index: Index) -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    figures.draw_panel(ax, figures.curves(index, Request()), "NCI1")
    assert sum(line.get_markerfacecolor() == "white" for line in ax.lines) == 8
    with pytest.raises(UserError, match=r"NCI1 k=5 .* has 27 of 30 trials"):
        figures.curves(index, Request(strict=True))


def test_no_two_methods_look_alike(index: Index) -> None:
    styles = figures.curves(index, Request()).styles()
    assert len({style.marker for style in styles.values()}) == len(styles)
    assert len({str(style.dashes) for style in styles.values()}) == len(styles)
    assert len({style.color for style in styles.values()}) == len(styles)
    many = figures.Curves(figures.curves(index, Request()).points, tuple(f"m{i}" for i in range(12)), "accuracy")
    assert len({(s.color, s.marker, str(s.dashes)) for s in many.styles().values()}) == 12


def test_other_datasets_show_every_method_and_odd_names_draw(index: Index, tmp_path: Path) -> None:
    data = figures.curves(index, Request(), datasets=[HOSTILE])
    assert set(data.methods) == {"GCN", "duplicate", HOSTILE}
    (path,) = style.save(figures.label_rate_figure(data), tmp_path, "odd", ["svg"])
    ET.parse(path)
    with pytest.raises(UserError, match="unknown dataset with results 'PROTEIN'"):
        figures.curves(index, Request(), datasets=["PROTEIN"])
    with pytest.raises(figures.NothingToDraw, match="backbone gin and readout mean"):
        figures.curves(index, Request(), backbone="gin")


def test_ranks_over_datasets_and_their_diagram(index: Index, tmp_path: Path) -> None:
    data = figures.curves(index, Request())
    assert figures.ranking_rates(data) == [2, 3, 5, 10, 25, 50]
    found = figures.rank_methods(data, 10)
    assert found is not None and len(found.blocks) == 6
    table = data.points.query("k == 10").pivot(index="dataset", columns="method", values="value")
    by_hand = {m: sum((row > row[m]).sum() + 1 for _, row in table.iterrows()) / 6 for m in table.columns}
    assert found.mean_ranks.to_dict() == pytest.approx(by_hand)
    (path,) = style.save(figures.critical_difference_figure(found, 10), tmp_path, "cd", ["svg"])
    ET.parse(path)
    assert figures.ranking_rates(figures.curves(index, Request(), datasets=["NCI1"])) == []


def test_inline_drawings_take_the_pages_color_and_share_no_id(index: Index) -> None:
    found = figures.rank_methods(figures.curves(index, Request()), 2)
    assert found is not None
    drawings = [
        style.inline_svg(figures.critical_difference_figure(found, 2, ink="#010203"), s, "#010203") for s in "ab"
    ]
    ids = [{e.get("id") for e in ET.fromstring(text).iter() if e.get("id")} for text in drawings]
    assert ids[0] and not ids[0] & ids[1]
    assert "currentColor" in drawings[0] and "#010203" not in drawings[0]


def test_learners_are_lines_beside_plain_networks(fake: ModuleType, tmp_path: Path) -> None:
    places = [p for p in LEARNERS_BY_K.coordinates() if p.dataset in ("DD", "NCI1") and p.k in (2, 10)]
    held = Index(from_records(fake.ledger(places)))
    data = figures.learner_curves(held, Request())
    assert list(data.methods) == [row.name for row in LEARNERS_BY_K.rows]
    assert set(data.points.loc[data.points["is_reference"], "method"]) == {"GCN"}
    assert data.points.loc[~data.points["is_reference"], "paired"].notna().all()
    drawn = {one.name: one.figure for one in all_figures(held, Request(), ("gcn", "mean"), (), style.TEXT)}
    assert {"learners_by_k", "learners-differences-k2", "learners-differences-k10", "main_exp"} <= set(drawn)
    (path,) = style.save(drawn["learners_by_k"], tmp_path, "learners_by_k", ["svg"])
    ET.parse(path)
    alone = Index(from_records(fake.ledger([place for place in places if not place.backbone])))
    assert [one.name for one in all_figures(alone, Request(), ("gcn", "mean"), (), style.TEXT)] == ["learners_by_k"]
    networks = Index(from_records(fake.ledger([place for place in places if place.backbone])))
    with pytest.raises(figures.NothingToDraw, match="run the grid learners_by_k"):
        figures.learner_curves(networks, Request())
