"""Forest plots, heat maps, cost and the paper's numbers: what is drawn is what the frame says."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.results.frame import from_records
from tables import figures, style
from tables.compare import compare
from tables.frames import method_frame, over_datasets_frame
from tables.grid import Request
from tables.publishing import all_figures
from tables.selection import Index
from tables.specs import METHODS, Column, Coordinate

DATASETS = ("PROTEINS", "NCI1", "IMDB-BINARY")
LEVELS = {"none": 0.5, "dropedge": 0.55, "dropnode": 0.44, "gdm-acc": 0.5005}


def value(place: Coordinate, fold: int, repeat: int) -> float:
    rng = np.random.default_rng([fold, repeat, len(place.dataset), len(place.augmenter)])
    return round(LEVELS.get(place.augmenter, 0.5) + rng.normal(0, 0.02), 4)


@pytest.fixture(scope="module")
def index(fake: ModuleType) -> Index:
    places = [row.at(Column(name, 10, "")) for name in DATASETS for row in METHODS]
    return Index(from_records(fake.ledger(places, value=value)))


@pytest.fixture(scope="module")
def frame(index: Index) -> pd.DataFrame:
    return method_frame(index, Request())


def test_the_frame_holds_scipys_interval_and_a_verdict(frame: pd.DataFrame) -> None:
    row = frame[(frame["dataset"] == "NCI1") & (frame["method"] == "DropEdge")].iloc[0]
    at = {name: Coordinate("NCI1", 10, name) for name in ("none", "dropedge")}
    means = [np.mean([value(at["dropedge"], f, r) - value(at["none"], f, r) for r in range(3)]) for f in range(10)]
    found = stats.ttest_1samp(means, 0)
    ends = found.confidence_interval(0.95)
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((100 * ends.low, 100 * ends.high))
    assert row["p"] == pytest.approx(found.pvalue)
    own = stats.t.interval(
        0.95,
        9,
        *(lambda m: (m.mean(), stats.sem(m)))(
            np.array([np.mean([value(at["dropedge"], f, r) for r in range(3)]) for f in range(10)])
        ),
    )
    assert (row["low"], row["high"]) == pytest.approx([100 * end for end in own])
    verdicts = frame[frame["dataset"] == "NCI1"].set_index("method")["verdict"]
    assert verdicts[["GCN", "DropEdge", "DropNode"]].tolist() == ["reference", "better", "worse"]


def test_over_datasets_takes_those_that_every_method_has(frame: pd.DataFrame) -> None:
    lacking = frame[(frame["dataset"] != "NCI1") | (frame["method"] != "GDM Acc")]
    over = over_datasets_frame(lacking, 10)
    assert set(over["datasets"]) == {2} and "GCN" not in set(over["method"])
    held = frame[(frame["method"] == "DropEdge") & frame["dataset"].isin(["PROTEINS", "IMDB-BINARY"])]
    mean = over.set_index("method").loc["DropEdge", "difference_mean"]
    assert mean == pytest.approx(held["difference_mean"].mean())


def test_a_forest_has_a_panel_per_dataset_and_shapes_for_verdicts(frame: pd.DataFrame) -> None:
    drawn = figures.forest_figure(frame, 10)
    titles = {ax.get_title(): ax for ax in drawn.axes}
    assert list(titles) == ["Proteins", "NCI1", "IMDB-Binary", "All 3 datasets", ""]
    points = {
        round(float(line.get_xdata()[0]), 9): (line.get_marker(), line.get_markerfacecolor())
        for line in titles["NCI1"].lines
        if line.get_marker() in style.SHAPES.values()
    }
    part = frame[(frame["dataset"] == "NCI1") & (frame["verdict"] != "reference")]
    shapes = {"better": ("^", style.BETTER), "worse": ("v", style.WORSE), "open": ("o", "white")}
    assert points == {round(row.difference_mean, 9): shapes[str(row.verdict)] for row in part.itertuples()}
    low, high = titles["NCI1"].get_xlim()
    assert low == -high and high >= part["difference_high"].max()


def test_a_heat_map_prints_every_difference(frame: pd.DataFrame) -> None:
    texts = {text.get_text() for text in figures.heat_map_figure(frame, 10).axes[0].texts}
    part = frame[frame["verdict"].isin(["better", "worse"])]
    assert {f"{mean:+.1f}*".replace("-", "\u2212") for mean in part["difference_mean"]} <= texts


def test_nothing_to_compare_with_is_no_forest(frame: pd.DataFrame) -> None:
    with pytest.raises(figures.NothingToDraw, match="run the method `none` beside"):
        figures.forest_figure(frame[frame["augmenter"] == "none"], 10)
    data = figures.Curves(frame, ("GCN",), "accuracy")
    for draw in (figures.label_rate_figure, figures.difference_curves_figure):
        with pytest.raises(figures.NothingToDraw):
            draw(data)


def test_the_dumbbell_joins_ours_and_the_papers(index: Index) -> None:
    found = compare(index, Request(), ["10labelrate"])
    frame = figures.paper_frame(found)
    assert len(frame) == len(found.lines) == 24
    drawn = figures.dumbbell_figure(frame, "10labelrate")
    ends = {tuple(line.get_xdata()) for ax in drawn.axes for line in ax.lines if line.get_color() == style.PAPER_GRAY}
    assert {(row.paper, row.ours) for row in frame.itertuples()} <= ends


def _inside(figure: Any) -> bool:
    """Whether every title, label, number and legend that shows lies within the figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    ticks = {label for ax in figure.axes for axis in (ax.xaxis, ax.yaxis) for label in axis.findobj(Text)}
    words = [one for one in figure.findobj(Text) if one not in ticks and one.get_visible() and one.get_text().strip()]
    drawn = [one.get_window_extent() for one in words]
    wide, high = figure.bbox.max
    return all(one.x0 > -1 and one.y0 > -1 and one.x1 < wide + 1 and one.y1 < high + 1 for one in drawn)


def test_captions_say_what_is_absent_and_what_can_be_found(index: Index) -> None:
    drawn = {one.name: one.caption for one in all_figures(index, Request(), ("gcn", "mean"), (), style.TEXT)}
    assert {"differences-k10", "heat-map-k10", "cost-k10", "ranks-k10", "paper-10labelrate"} <= set(drawn)
    assert "main_exp" not in drawn, "one label rate makes no line"
    for name in ("differences-k10", "heat-map-k10", "cost-k10", "ranks-k10", "critical-difference-k10"):
        assert "Not run: D&D, IMDB-Multi, Reddit-5K." in drawn[name] and "30 trials per cell" in drawn[name]
        assert "4 times in 5 if it is at least" in drawn[name]
    chosen = all_figures(index, Request(), ("gcn", "mean"), ("NCI1",), style.TEXT)
    assert "Not run" not in next(chosen).caption, "what was not asked for is not missing"


def test_every_figure_is_written_at_both_widths(frame: pd.DataFrame, index: Index, tmp_path: Path) -> None:
    paper = figures.paper_frame(compare(index, Request()))
    ranks = figures.rank_methods(figures.curves(index, Request()), 10)
    assert ranks is not None
    for name, width in style.WIDTHS.items():
        drawn = {
            "forest": figures.forest_figure(frame, 10, width),
            "heat": figures.heat_map_figure(frame, 10, width),
            "cost": figures.cost_figure(frame, 10, width),
            "paper": figures.dumbbell_figure(paper, "10labelrate", width),
            "nemenyi": figures.critical_difference_figure(ranks, 10, width),
        }
        ranked = figures.ranks_figure(ranks, 10, width)
        assert _inside(ranked), "no title or label is cut off"
        for stem, figure in drawn.items():
            assert figure.get_size_inches()[0] == pytest.approx(min(width, 6.4) if stem == "nemenyi" else width)
            assert _inside(figure), f"something of {stem} is cut off at {width} inches"
            (path,) = style.save(figure, tmp_path / name, stem, ["svg"])
            assert path.stat().st_size > 5000


def test_an_interval_of_too_few_pairs_does_not_stretch_the_axis(frame: pd.DataFrame) -> None:
    wide = frame.copy()
    place = wide.index[(wide["dataset"] == "NCI1") & (wide["verdict"] != "reference")][0]
    wide.loc[place, ["verdict", "difference_low", "difference_high"]] = ["untested", -90.0, 90.0]
    usual, stretched = (figures.forest_figure(one, 10).axes[0].get_xlim()[1] for one in (frame, wide))
    assert stretched <= usual < 90


def test_rows_and_axis_can_be_named_otherwise(frame: pd.DataFrame) -> None:
    drawn = figures.forest_figure(frame, 10, against="plain GCN", order=("GDM Acc", "DropEdge", "GCN"))
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["GDM Acc", "DropEdge"]
    assert "difference to plain GCN" in drawn.get_supxlabel()


def test_a_long_name_is_cut_in_its_middle() -> None:
    name = style.plain_text("submix:" + "p=0.4," * 20 + "features=carry")
    assert len(name) == style.LONGEST and name.startswith("submix:p=") and name.endswith("features=carry")
