"""Differences to plain training: forest plots with intervals per dataset, and a heat map of methods by datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tables.frames import ALL, NothingToDraw, methods_in_order, over_datasets_frame, panels
from tables.statistics import REGION
from tables.style import (
    BETTER,
    INK,
    OPEN,
    PAPER_GRAY,
    SHAPES,
    TEXT,
    WORSE,
    colormap,
    dataset_name,
    drawing,
    plain_text,
    tidy_axes,
)
from tables.wording import signed

COLORS = {"better": BETTER, "worse": WORSE, "open": OPEN, "untested": OPEN}
WORDS = {
    "better": "significantly better",
    "worse": "significantly worse",
    "open": "not significant",
    "untested": "too few pairs for a test",
}

_STRIP = 0.22  # how dark the region of practically no difference is


def forest_figure(
    frame: pd.DataFrame,
    k: int,
    width: float = TEXT,
    ink: str = INK,
    against: str = "plain training",
    order: Sequence[str] = (),
) -> Any:
    """Paired differences of each method with 95 % intervals, one panel per dataset and one over all datasets.

    The shaded strip is the region of practical equivalence. Filled markers are significant after Holm's correction
    within the panel. In a column-wide figure, panels are stacked vertically.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    part = frame[(frame["k"] == k) & frame["paired"].notna()]
    if part.empty:
        raise NothingToDraw(f"no difference to plain training at k = {k}; run the method `none` beside the others")
    there = set(part["method"])
    methods = [name for name in order if name in there] or methods_in_order(part["method"])
    over = over_datasets_frame(frame, k)
    names = [*panels(part), *([ALL] if len(over) else [])]
    wide = 1 if width < 5 else min(3, len(names))
    high = -(-len(names) // wide)
    both = pd.concat([part, over]) if len(over) else part
    with drawing(ink):
        size = (width, high * (0.55 + 0.19 * len(methods)) + 0.55)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False, sharex=True, sharey=True)
        for place, ax in enumerate(axes.flat):
            if place < len(names):
                held = both[both["dataset"] == names[place]].set_index("method").reindex(methods)
                _forest(ax, held, _title(names[place], over), ink)
            else:
                ax.set_axis_off()
        _limits(axes.flat[0], both)
        axes.flat[0].set_yticks(range(len(methods)), [plain_text(name) for name in methods])
        axes.flat[0].set_ylim(len(methods) - 0.4, -0.6)
        figure.supxlabel(_axis_words(k, against), fontsize=8.5 if width >= 5 else 7.5, color=ink)
        handles = [_key(name) for name in WORDS if name in set(both["verdict"])]
        handles.append(Patch(color=PAPER_GRAY, alpha=_STRIP, linewidth=0, label="within one point"))
        shape = {"ncols": 2, "handlelength": 1.4, "columnspacing": 1.0} if width < 5 else {"ncols": len(handles)}
        figure.legend(handles=handles, loc="outside upper center", **shape)
    return figure


def _axis_words(k: int, against: str = "plain training") -> str:
    return f"difference to {against} at k = {k} (percentage points)"


def _title(name: str, over: pd.DataFrame) -> str:
    return f"All {int(over['datasets'].iloc[0])} datasets" if name == ALL else dataset_name(name)


def _forest(ax: Any, held: pd.DataFrame, title: str, ink: str) -> None:
    ax.axvspan(-100 * REGION, 100 * REGION, color=PAPER_GRAY, alpha=_STRIP, linewidth=0)
    ax.axvline(0, color=ink, linewidth=0.7)
    for place, row in enumerate(held.itertuples()):
        if not isinstance(row.verdict, str):
            continue
        color = COLORS[row.verdict]
        sure = row.verdict in ("better", "worse")
        ax.plot([row.difference_low, row.difference_high], [place, place], color=color, linewidth=1.8 if sure else 1.1)
        face = color if sure else "white"
        ax.plot([row.difference_mean], [place], marker=SHAPES[color], color=color, markerfacecolor=face, markersize=5)
    ax.set_title(title)
    tidy_axes(ax, "x")


def _limits(ax: Any, frame: pd.DataFrame) -> None:
    """The same points on both sides, so that panels and figures are read alike; intervals of a few pairs may leave."""
    from matplotlib.ticker import MaxNLocator

    tested = frame[frame["verdict"] != "untested"]
    ends = (tested if len(tested) else frame)[["difference_low", "difference_high", "difference_mean"]].abs().to_numpy()
    most = max(2.0, float(np.nanmax(ends))) * 1.05
    ax.set_xlim(-most, most)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))


def _key(verdict: str) -> Any:
    from matplotlib.lines import Line2D

    color, sure = COLORS[verdict], verdict in ("better", "worse")
    line = Line2D([], [], color=color, marker=SHAPES[color], markersize=5, linewidth=1.2)
    line.set_markerfacecolor(color if sure else "white")
    line.set_label(WORDS[verdict])
    return line


def heat_map_figure(frame: pd.DataFrame, k: int, width: float = TEXT, ink: str = INK) -> Any:
    """Methods by datasets at one label rate: the difference as a color and a number, with a star if significant."""
    from matplotlib.figure import Figure

    part = frame[(frame["k"] == k) & frame["paired"].notna()]
    if part.empty:
        raise NothingToDraw(f"no difference to plain training at k = {k}; run the method `none` beside the others")
    over = over_datasets_frame(frame, k)
    both = pd.concat([part, over]) if len(over) else part
    methods, datasets = methods_in_order(part["method"]), [*panels(part), *([ALL] if len(over) else [])]
    values = both.pivot(index="method", columns="dataset", values="difference_mean").reindex(methods)[datasets]
    verdicts = both.pivot(index="method", columns="dataset", values="verdict").reindex(methods)[datasets]
    small = width < 5
    with drawing(ink, 7 if small else 8.5):
        figure = Figure(figsize=(width, 0.21 * len(methods) + (0.85 if small else 0.75)), layout="constrained")
        ax = figure.subplots()
        most = max(2.0, float(np.nanmax(values.abs().to_numpy())))
        numbers = values.to_numpy(dtype=float)
        drawn = ax.pcolormesh(numbers, cmap=colormap(), vmin=-most, vmax=most, edgecolors="white", linewidth=1)
        for row, method in enumerate(methods):
            for column, dataset in enumerate(datasets):
                value = float(numbers[row, column])
                dark = abs(value) > 0.72 * most
                star = "*" if verdicts.loc[method, dataset] in ("better", "worse") else ""
                words = "" if np.isnan(value) else f"{signed(value / 100)}{star}".replace("-", "\u2212")
                ax.text(
                    column + 0.5,
                    row + 0.5,
                    words,
                    ha="center",
                    va="center",
                    fontsize=6.2 if small else 8,
                    color="#FFFFFF" if dark else "#111111",
                    fontweight="bold" if star else "normal",
                )
        heads = [_title(name, over) if name == ALL else dataset_name(name, short=True) for name in datasets]
        heads = [head.replace(" datasets", "") if small else head for head in heads]
        ax.set_xticks(np.arange(len(datasets)) + 0.5, heads)
        ax.set_yticks(np.arange(len(methods)) + 0.5, [plain_text(name) for name in methods])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.invert_yaxis()
        for side in ax.spines.values():
            side.set_visible(False)
        if not small:  # the numbers are in the cells
            bar = figure.colorbar(drawn, ax=ax, pad=0.02, aspect=12)
            bar.outline.set_visible(False)
            bar.set_label("points")
        below = [_axis_words(k), "*: significant (Holm's correction)"]
        figure.supxlabel(("\n" if small else "; ").join(below), fontsize=7.5 if small else 8.5, color=ink)
    return figure
