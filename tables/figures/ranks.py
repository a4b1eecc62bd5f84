"""Methods ranked over datasets."""

from __future__ import annotations

from typing import Any

from tables.figures.label_rates import Curves
from tables.statistics import FEWEST, Ranking, ranking
from tables.style import BETTER, INK, OPEN, TEXT, drawing, plain_text, tidy_axes


def rank_methods(data: Curves, k: int) -> Ranking | None:
    """Mean ranks over the datasets at one label rate; None if fewer than two datasets or methods are complete."""
    part = data.points[data.points["k"] == k]
    means = part.pivot(index="dataset", columns="method", values="value")
    return ranking(means[[name for name in data.methods if name in means.columns]])


def ranking_rates(data: Curves) -> list[int]:
    """The label rates at which methods can be ranked."""
    return [int(k) for k in sorted(data.points["k"].unique()) if rank_methods(data, int(k)) is not None]


def ranks_figure(found: Ranking, k: int, width: float = TEXT, ink: str = INK) -> Any:
    """Mean ranks with bootstrap intervals over datasets, the best on top; filled: tied for the top."""
    from matplotlib.figure import Figure

    names = list(found.mean_ranks.index)
    with drawing(ink):
        figure = Figure(figsize=(min(width, 4.6), 0.22 * len(names) + 0.95), layout="constrained")
        ax = figure.subplots()
        for place, name in enumerate(names):
            top = name in found.top and len(found.blocks) >= FEWEST
            color = BETTER if top else OPEN
            low, high = found.intervals.loc[name, "low"], found.intervals.loc[name, "high"]
            ax.plot([low, high], [place, place], color=color, linewidth=1.4)
            face = color if top else "white"
            ax.plot([found.mean_ranks[name]], [place], "o", color=color, markerfacecolor=face, markersize=5)
        ax.set_yticks(range(len(names)), [plain_text(str(name)) for name in names])
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlim(0.7, len(names) + 0.3)
        figure.supxlabel(_rank_words(found, k), fontsize=8.5, color=ink)
        figure.suptitle(top_words(found), fontsize=7.5, color=ink)  # the axes are too narrow for it
        tidy_axes(ax, "x")
    return figure


def _rank_words(found: Ranking, k: int) -> str:
    return f"mean rank over {len(found.blocks)} datasets at k = {k} (1 is best)"


def top_words(found: Ranking) -> str:
    """Which methods are tied for the top, in a few words."""
    if len(found.blocks) < FEWEST:
        return f"{len(found.blocks)} datasets are too few to tell any method from the best"
    if len(found.top) == 1:
        return f"{plain_text(found.top[0])} alone at the top"
    return f"{len(found.top)} of {len(found.mean_ranks)} methods tied for the top (filled)"


def critical_difference_figure(found: Ranking, k: int, width: float = TEXT, ink: str = INK) -> Any:
    """Mean ranks on a line, the best at the left; a bar joins methods that Nemenyi's test cannot tell apart."""
    from matplotlib.figure import Figure
    from scikit_posthocs import critical_difference_diagram

    safe = {name: plain_text(name) for name in found.mean_ranks.index}
    small = width < 5
    with drawing(ink, 6.8 if small else 8.5):
        figure = Figure(figsize=(min(width, 6.4), 1.2 + (0.15 if small else 0.19) * len(safe)), layout="constrained")
        ax = figure.subplots()
        drawn = critical_difference_diagram(
            found.mean_ranks.rename(safe),
            found.p_pairs.rename(index=safe, columns=safe),
            ax=ax,
            label_fmt_left="{label} ({rank:.2f}) ",
            label_fmt_right=" ({rank:.2f}) {label}",
            color_palette={name: ink for name in safe.values()},
            elbow_props={"linewidth": 1.0},
            marker_props={"s": 10 if small else 16},
            crossbar_props={"color": ink, "linewidth": 3, "alpha": 0.6},
            text_h_margin=0.25,
        )
        for line in (line for bar in drawn["crossbars"] for line in bar):
            line.set_xdata(sorted(line.get_xdata()))  # points come from a set, whose order depends on the process
        ax.set_xlim(0.4, len(safe) + 0.6)
        ax.set_xticks(range(1, len(safe) + 1))
        words = f"{_rank_words(found, k)}; CD = {found.critical_difference:.2f}"
        ax.set_title(words, color=ink, pad=14)
    return figure
