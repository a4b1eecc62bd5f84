"""Figures of a search, from plain numbers: the best value over time, and the importance of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_DOT, _GIVEN_UP, _LINE, _RULE = "#1F7FC4", "#8A8A8A", "#D55E00", "#000000"


def history_figure(
    title: str,
    trials: Sequence[tuple[int, str, float | None]],
    best: Sequence[float],
    default: float | None = None,
) -> Any:
    """The value of each trial in the order in which they ended, the best so far, and the value of the default settings.

    `trials` are (number, state, value); those without a value are marked on the axis. Values are fractions.
    """
    figure, axes = _figure(title, 3.4)
    valued = [(place, value) for place, (_, _, value) in enumerate(trials, 1) if value is not None]
    given_up = [place for place, (_, _, value) in enumerate(trials, 1) if value is None]
    axes.plot([p for p, _ in valued], [100 * v for _, v in valued], "o", color=_DOT, ms=4, label="trial")
    axes.plot(*_steps(best), color=_LINE, drawstyle="steps-post", label="best")
    if default is not None:
        axes.axhline(100 * default, color=_RULE, lw=0.8, ls="--", label="default settings")
    if given_up:
        axes.plot(
            given_up,
            [0.015] * len(given_up),
            "|",
            color=_GIVEN_UP,
            transform=axes.get_xaxis_transform(),
            label="given up early or failed",
        )
    axes.set(xlabel="trials", ylabel="validation accuracy (%)")
    axes.legend(frameon=False, fontsize=7)
    return figure


def folds_figure(
    title: str, curves: Mapping[str, Sequence[float]], mean: Sequence[float], default: float | None = None
) -> Any:
    """The best value so far of each fold's own search, their mean, and the mean value of the default settings.

    Values are fractions, in the order in which trials ended; NaN before a fold's first complete trial.
    """
    figure, axes = _figure(title, 3.4)
    for place, curve in enumerate(curves.values()):
        label = "best of each fold" if place == 0 else None
        axes.plot(*_steps(curve), color=_DOT, lw=0.7, alpha=0.5, drawstyle="steps-post", label=label)
    axes.plot(*_steps(mean), color=_LINE, lw=1.8, drawstyle="steps-post", label="mean over folds")
    if default is not None:
        axes.axhline(100 * default, color=_RULE, lw=0.8, ls="--", label="default settings, mean over folds")
    axes.set(xlabel="trials of each fold", ylabel="validation accuracy (%)")
    axes.legend(frameon=False, fontsize=7)
    return figure


def _steps(values: Sequence[float]) -> tuple[list[int], list[float]]:
    return list(range(1, len(values) + 1)), [100 * value for value in values]


def importance_figure(title: str, shares: Mapping[str, float]) -> Any:
    """The importance of each setting for the value, as shares of 1."""
    ordered = sorted(shares.items(), key=lambda item: item[1])
    figure, axes = _figure(title, 1.2 + 0.28 * len(ordered))
    bars = axes.barh([name for name, _ in ordered], [share for _, share in ordered], color=_DOT)
    axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=2)
    axes.set(xlabel="share of the variation among the best trials")
    return figure


def _figure(title: str, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, height), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=8, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
