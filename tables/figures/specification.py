"""The specification curve: the gain of every specification, sorted, with its choices as a matrix of dots below."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tables.specs import method_name
from tables.style import (
    BETTER,
    INK,
    OPEN,
    PAPER_GRAY,
    SHAPES,
    TEXT,
    WORSE,
    dataset_name,
    drawing,
    plain_text,
    tidy_axes,
)

WORDS = {BETTER: "95 % interval above zero", WORSE: "below zero", OPEN: "contains zero"}


def specification_curve(frame: pd.DataFrame, choices: list[str], width: float = TEXT, ink: str = INK) -> Any:
    """One column per row of `frame`, which has `gain`, `low` and `high` as fractions and a level for each choice."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    ordered = frame.sort_values("gain", kind="stable", ignore_index=True)
    levels = [(name, level) for name in choices for level in sorted(ordered[name].astype(str).unique())]
    size = max(1.4, min(4.0, 45 * width / len(ordered)))  # a few columns as visible points, hundreds side by side
    with drawing(ink, size=7.5):
        figure = Figure(figsize=(width, 2.6 + 0.14 * len(levels)), layout="constrained")
        top, below = figure.subplots(2, 1, sharex=True, height_ratios=[2.0, 0.14 * len(levels) + 0.2])
        colors = [
            BETTER if low > 0 else WORSE if high < 0 else OPEN
            for low, high in zip(ordered["low"], ordered["high"], strict=True)
        ]
        for place, (row, color) in enumerate(zip(ordered.to_dict(orient="records"), colors, strict=True)):
            top.plot([place, place], [100 * row["low"], 100 * row["high"]], color=color, linewidth=0.7, alpha=0.6)
            top.plot([place], [100 * row["gain"]], SHAPES[color], color=color, markersize=size)
        top.axhline(0, color=ink, linewidth=0.7)
        top.set_ylabel("gain of GDM (points)")
        tidy_axes(top, "y")
        keys = [
            Line2D([], [], color=color, marker=SHAPES[color], markersize=4, linewidth=0.9, label=words)
            for color, words in WORDS.items()
            if color in colors
        ]
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys) if width >= 5 else 2)
        for line, (name, level) in enumerate(levels):
            places = ordered.index[ordered[name].astype(str) == level]
            below.plot(places, [line] * len(places), "|", color=ink, markersize=4, markeredgewidth=0.6)
            if choices.index(name) % 2 == 0:
                below.axhspan(line - 0.5, line + 0.5, color=PAPER_GRAY, alpha=0.15, linewidth=0)
        below.set_yticks(range(len(levels)), [plain_text(_level_words(name, level)) for name, level in levels])
        below.set_ylim(len(levels) - 0.4, -0.6)
        below.set_xticks([])
        below.set_xlim(-0.02 * len(ordered) - 0.5, 1.02 * len(ordered) - 0.5)
        below.set_xlabel(f"{len(ordered)} specifications, by their gain")
        tidy_axes(below, "y")
    return figure


def _level_words(choice: str, level: str) -> str:
    """A level under the name that every table has for it."""
    if choice == "dataset":
        return dataset_name(level)
    return method_name(level, "gcn", "mean") if choice == "method" else f"{choice} = {level}"
