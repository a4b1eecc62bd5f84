"""The cost of methods against their gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tables.frames import NothingToDraw, methods_in_order, panels
from tables.style import INK, PAPER_GRAY, TEXT, dataset_name, drawing, method_styles, plain_text, tidy_axes

_LEVEL = (0, (4, 2))


def cost_figure(frame: pd.DataFrame, k: int, width: float = TEXT, ink: str = INK) -> Any:
    """Accuracy with its 95 % interval against seconds per trial, one panel per dataset; the line is plain training."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    part = frame[(frame["k"] == k) & (frame["seconds"] > 0)]
    if part.empty:
        raise NothingToDraw(f"no trial at k = {k} says how long it took")
    methods, names = methods_in_order(part["method"]), panels(part)
    styles = method_styles(methods, ink)
    wide = 1 if width < 5 else min(3, len(names))
    high = -(-len(names) // wide)
    with drawing(ink):
        figure = Figure(figsize=(width, 1.75 * high + 0.7), layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False)
        for place, ax in enumerate(axes.flat):
            if place >= len(names):
                ax.set_axis_off()
                continue
            held = part[part["dataset"] == names[place]]
            for row in held.itertuples():
                style = styles[str(row.method)]
                ax.plot([row.seconds] * 2, [row.low, row.high], color=style.color, linewidth=0.9)
                ax.plot([row.seconds], [row.value], marker=style.marker, color=style.color, markersize=5)
            plain = held[held["augmenter"] == "none"]
            if len(plain):
                ax.axhline(float(plain["value"].iloc[0]), color=PAPER_GRAY, linewidth=0.8, linestyle=_LEVEL)
            _seconds_axis(ax, held["seconds"])
            ax.set_title(dataset_name(names[place]))
            tidy_axes(ax)
        figure.supxlabel(f"seconds per trial at k = {k}, augmentation and training", fontsize=8.5, color=ink)
        figure.supylabel("accuracy (%), with 95 % intervals", fontsize=8.5, color=ink)
        keys = [
            Line2D([], [], color=s.color, marker=s.marker, linestyle="none", label=plain_text(m))
            for m, s in styles.items()
        ]
        keys.append(Line2D([], [], color=PAPER_GRAY, linewidth=0.8, linestyle=_LEVEL, label="level of plain training"))
        figure.legend(handles=keys, loc="outside upper center", ncols=5 if width >= 5 else 3)
    return figure


def _seconds_axis(ax: Any, seconds: pd.Series[float]) -> None:
    """A logarithmic axis with a few round numbers."""
    from matplotlib.ticker import NullFormatter, NullLocator

    ax.set_xscale("log")
    low, high = float(seconds.min()) / 1.15, float(seconds.max()) * 1.15
    ax.set_xlim(low, high)
    rounds = [m * 10.0**e for e in range(-4, 6) for m in (1, 1.5, 2, 3, 5, 7) if low <= m * 10.0**e <= high]
    rounds = rounds or [float(np.round(np.sqrt(low * high), 2))]
    ax.set_xticks(rounds, [f"{value:g}" for value in rounds])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
