"""Figures of a search: every trial has its mark, and the numbers drawn are the numbers given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tables.style import save
from tables.tuning_figures import folds_figure, history_figure, importance_figure

TRIALS = [(0, "complete", 0.5), (1, "given up", None), (2, "complete", 0.7), (3, "complete", 0.6)]


def test_the_history_shows_every_trial_the_best_so_far_and_the_defaults(tmp_path: Path) -> None:
    figure = history_figure("a study", TRIALS, [0.5, 0.5, 0.7, 0.7], default=0.5)
    [axes] = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert list(lines["trial"].get_xdata()) == [1, 3, 4]
    assert list(lines["trial"].get_ydata()) == pytest.approx([50, 70, 60]), "in percent"
    assert list(lines["best"].get_ydata()) == pytest.approx([50, 50, 70, 70])
    assert list(lines["given up early or failed"].get_xdata()) == [2]
    assert lines["default settings"].get_ydata()[0] == 50
    assert axes.get_title(loc="left") == "a study" and "%" in axes.get_ylabel()
    [path] = save(figure, tmp_path, "history", ["png"])
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_history_without_a_complete_trial_can_be_drawn(tmp_path: Path) -> None:
    figure = history_figure("a study", [(0, "failed", None)], [float("nan")])
    assert save(figure, tmp_path, "history", ["png"])[0].stat().st_size > 0
    assert "default settings" not in {line.get_label() for line in figure.axes[0].get_lines()}


def test_folds_have_a_thin_line_each_and_their_mean_a_thick_one(tmp_path: Path) -> None:
    curves = {"0": [0.5, 0.6], "1": [float("nan"), 0.8, 0.8]}
    figure = folds_figure("a method", curves, [0.5, 0.7, 0.7], default=0.5)
    [axes] = figure.axes
    *folds, mean, default = axes.get_lines()
    assert [list(line.get_xdata()) for line in folds] == [[1, 2], [1, 2, 3]]
    assert list(mean.get_ydata()) == pytest.approx([50, 70, 70]) and mean.get_linewidth() > folds[0].get_linewidth()
    assert default.get_ydata()[0] == 50
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["best of each fold", "mean over folds", "default settings, mean over folds"]
    save(figure, tmp_path, "history", ["png"])
    assert len(folds_figure("nothing yet", {"0": []}, []).axes[0].get_lines()) == 2


def test_importances_are_bars_from_the_largest_down(tmp_path: Path) -> None:
    figure = importance_figure("a study", {"training.lr": 0.7, "backbone.width": 0.1, "augmenter.p": 0.2})
    [axes] = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [0.1, 0.2, 0.7]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["backbone.width", "augmenter.p", "training.lr"]
    save(figure, tmp_path, "importance", ["png"])
