"""The specification curve: the gain of every specification, sorted, with its choices as a matrix of dots below."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tables.style import BETTER, INK, OPEN, PAPER_GREY, TEXT, WORSE, drawing, plain_text, tidy_axes


def specification_curve(frame: pd.DataFrame, choices: list[str], width: float = TEXT, ink: str = INK) -> Any:
    """One column per row of `frame`, which has `gain`, `low` and `high` as fractions and a level for each choice."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    ordered = frame.sort_values("gain", kind="stable", ignore_index=True)
    levels = [(name, level) for name in choices for level in sorted(ordered[name].astype(str).unique())]
    with drawing(ink, size=7.5):
        figure = Figure(figsize=(width, 2.4 + 0.14 * len(levels)), layout="constrained")
        top, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.0, 0.14 * len(levels) + 0.2])
        for place, row in enumerate(ordered.to_dict(orient="records")):
            colour = BETTER if row["low"] > 0 else WORSE if row["high"] < 0 else OPEN
            top.plot([place, place], [100 * row["low"], 100 * row["high"]], color=colour, linewidth=0.7, alpha=0.6)
            top.plot([place], [100 * row["gain"]], "o", color=colour, markersize=2)
        top.axhline(0, color=PAPER_GREY, linewidth=0.8)
        top.set_ylabel("gain of GDM (points)")
        tidy_axes(top, "y")
        for line, (name, level) in enumerate(levels):
            places = ordered.index[ordered[name].astype(str) == level]
            below.plot(places, [line] * len(places), "|", color=ink, markersize=4, markeredgewidth=0.6)
        below.set_yticks(range(len(levels)), [plain_text(f"{name} {level}") for name, level in levels])
        below.set_ylim(len(levels) - 0.4, -0.6)
        below.set_xlabel(f"{len(ordered)} specifications, by their gain")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy_axes(below, "y")
    return figure
