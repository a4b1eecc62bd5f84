"""Our numbers and the paper's, side by side."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from tables.compare import Comparison
from tables.frames import NothingToDraw
from tables.style import INK, OURS, PAPER_GRAY, TEXT, THEIRS, dataset_name, drawing, plain_text, tidy_axes


def paper_frame(comparison: Comparison) -> pd.DataFrame:
    """One row per compared number, in percent, each with half of its own 95 % interval."""
    return pd.DataFrame(
        {
            "table": line.theirs.table,
            "row": line.row,
            "dataset": line.theirs.coordinate.dataset,
            "k": line.theirs.coordinate.k,
            "ours": 100 * line.ours.mean,
            "ours_half": line.our_half,
            "paper": line.theirs.mean,
            "paper_half": line.their_half,
            "verdict": line.verdict,
        }
        for line in comparison.lines
    )


def dumbbell_figure(frame: pd.DataFrame, table: str, width: float = TEXT, ink: str = INK) -> Any:
    """Our numbers (filled) and the paper's (hollow) with 95 % intervals, joined by a line, one panel per column."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    part = frame[frame["table"] == table]
    if part.empty:
        raise NothingToDraw(f"no number of the paper's table {table} has a finished trial here")
    rows, columns = list(dict.fromkeys(part["row"])), list(dict.fromkeys(zip(part["dataset"], part["k"], strict=True)))
    one_rate = part["k"].nunique() == 1
    wide = 1 if width < 5 else min(3 if one_rate else 4, len(columns))
    high = -(-len(columns) // wide)
    with drawing(ink):
        figure = Figure(figsize=(width, high * (0.5 + 0.21 * len(rows)) + 0.6), layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False, sharey=True)
        for place, ax in enumerate(axes.flat):
            if place >= len(columns):
                ax.set_axis_off()
                continue
            dataset, k = columns[place]
            held = part[(part["dataset"] == dataset) & (part["k"] == k)]
            for line in held.itertuples():
                _dumbbell(ax, rows.index(line.row), line)
            ax.set_title(dataset_name(dataset) if one_rate else f"{dataset_name(dataset, short=True)}, k = {k}")
            ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            tidy_axes(ax, "x")
        axes.flat[0].set_yticks(range(len(rows)), [plain_text(name) for name in rows])
        axes.flat[0].set_ylim(len(rows) - 0.4, -0.6)
        rate = f" at k = {columns[0][1]}" if one_rate else ""
        figure.supxlabel(f"accuracy{rate} (%), with 95 % intervals", fontsize=8.5, color=ink)
        keys = [
            Line2D([], [], color=OURS, marker="o", markersize=5, label="ours"),
            Line2D([], [], color=THEIRS, marker="D", markerfacecolor="white", markersize=4.5, label="the paper's"),
        ]
        figure.legend(handles=keys, loc="outside upper center", ncols=2)
    return figure


def _dumbbell(ax: Any, place: int, line: Any) -> None:
    ax.plot([line.paper, line.ours], [place, place], color=PAPER_GRAY, linewidth=2.4, solid_capstyle="butt", zorder=1)
    for value, half, color, shift in (
        (line.ours, line.ours_half, OURS, -0.16),
        (line.paper, line.paper_half, THEIRS, 0.16),
    ):
        if not math.isnan(half):
            ax.plot([value - half, value + half], [place + shift] * 2, color=color, linewidth=0.9, zorder=2)
    ax.plot([line.paper], [place], marker="D", color=THEIRS, markerfacecolor="white", markersize=4.5, zorder=3)
    ax.plot([line.ours], [place], marker="o", color=OURS, markersize=5, zorder=3)
