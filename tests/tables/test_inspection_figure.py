"""The picture of generated graphs: any graph can be drawn, and the lines are those of the numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tables.inspection_figure import Panel, Sketch, inspection_figure, save_picture, spring_layout, unique_pairs

NAMES = ("density", "degree", "clustering", "spectrum")


def samples(*values):
    return {name: (np.array(values, dtype=float), np.full(len(values), 1.0)) for name in NAMES}


def complete(n):
    return np.array([(a, b) for a in range(n) for b in range(n) if a != b]).reshape(-1, 2)


def test_edges_are_drawn_once_whatever_their_direction():
    pairs, weights = unique_pairs(Sketch(3, np.array([[0, 1], [1, 0], [2, 2], [2, 1]]), np.array([0.5, 0.5, 9, 2.0])))
    assert pairs.tolist() == [[0, 1], [1, 2]]
    assert weights.tolist() == [0.5, 2.0]


def test_a_path_is_laid_out_in_order():
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    at = spring_layout(5, pairs)
    assert np.isfinite(at).all()
    steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
    assert np.linalg.norm(at[0] - at[4]) > 2 * steps.max()
    assert (spring_layout(5, pairs) == at).all()


def test_every_kind_of_graph_can_be_drawn(tmp_path):
    sketches = [
        Sketch(1, np.empty((0, 2))),
        Sketch(4, np.empty((0, 2))),
        Sketch(12, complete(12)),
        Sketch(130, complete(130)),
    ]
    panels = [
        Panel("originals", sketches, samples(1, 2, 3)),
        Panel("other originals", [], samples(1, 2, 2)),
        Panel("_odd $name$ of a method", sketches[:2], samples(100, 200)),
    ]
    figure = inspection_figure("a title with $ in it", panels)
    path = tmp_path / "picture.png"
    save_picture(figure, path)
    assert 10_000 < path.stat().st_size < 300_000
    drawings, distributions = figure.subfigs
    titles = [ax.get_title() for ax in drawings.axes if ax.get_title()]
    assert titles[:4] == ["n = 1, density 0.00", "n = 4, density 0.00", "n = 12, density 1.00", "n = 130, density 1.00"]
    assert [len(ax.lines) for ax in distributions.axes] == [3, 3, 3, 3]


def test_lines_reach_the_shares_of_the_numbers():
    panel = Panel("originals", [], {name: (np.array([0.0, 1.0]), np.array([1.0, 3.0])) for name in NAMES})
    figure = inspection_figure("t", [panel])
    line = figure.subfigs[1].axes[0].lines[0]
    heights = dict(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True))
    assert heights[0.0] == pytest.approx(0.25)
    assert heights[1.0] == pytest.approx(1.0)


def test_drawing_needs_no_torch():
    code = "import sys, tables.inspection_figure; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_axis_says_what_it_shows():
    figure = inspection_figure("x", [Panel("originals", [Sketch(2, complete(2))], samples(0, 1))])
    lower = figure.subfigs[1].axes
    assert all(ax.get_xlabel() for ax in lower) and lower[0].get_ylabel() == "cumulative share"
