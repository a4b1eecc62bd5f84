"""Accuracy and the difference to plain training, over the number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tables.frames import NothingToDraw, method_frame, methods_in_order, panels, rows_frame
from tables.grid import Request
from tables.own_specs import LEARNERS_BY_K
from tables.selection import Index
from tables.specs import FIGURE
from tables.style import (
    INK,
    PAPER_GRAY,
    TEXT,
    Style,
    dataset_name,
    drawing,
    method_styles,
    plain_text,
    tidy_axes,
)
from tables.wording import noun

_BAND = 0.25  # how dark the interval of plain training is


@dataclass(frozen=True)
class Curves:
    """The points of the figure: one row per (dataset, k, method), in percent."""

    points: pd.DataFrame  # the result of `method_frame`
    methods: tuple[str, ...]
    metric: str

    @property
    def datasets(self) -> list[str]:
        order = {name: place for place, (name, _) in enumerate(FIGURE.panels)}  # the order of the paper's figure
        return sorted(self.points["dataset"].unique(), key=lambda name: (order.get(name, len(order)), name))

    @property
    def with_lines(self) -> list[str]:
        """The datasets with more than one label rate, since a single point is not a line."""
        several = self.points.groupby("dataset")["k"].nunique() > 1
        return [name for name in self.datasets if several[name]]

    def styles(self, ink: str = INK) -> dict[str, Style]:
        return method_styles(self.methods, ink)


def curves(
    index: Index, request: Request, backbone: str = "gcn", readout: str = "mean", datasets: Sequence[str] = ()
) -> Curves:
    """The frame of one model's methods, as lines over the label rates."""
    frame = method_frame(index, request, backbone, readout, datasets)
    return Curves(frame, tuple(methods_in_order(frame["method"])), request.metric)


def learner_curves(index: Index, request: Request, datasets: Sequence[str] = ()) -> Curves:
    """Learners without a network next to plain networks, each compared with plain GCN; needs at least one learner."""
    rows = LEARNERS_BY_K.rows
    plain = next(row for row in rows if row.backbone == "gcn")
    frame = rows_frame(index, request, rows, plain, datasets)
    seen = set(frame["method"])
    if not seen & {row.name for row in rows if not row.backbone}:
        raise NothingToDraw("no finished trial of a learner without a network; run the grid learners_by_k")
    return Curves(frame, tuple(row.name for row in rows if row.name in seen), request.metric)


def draw_panel(ax: Any, data: Curves, dataset: str, ink: str = INK) -> None:
    """Lines of one dataset with the band of plain training; hollow markers indicate missing trials."""
    styles = data.styles(ink)
    part = data.points[data.points["dataset"] == dataset].sort_values("k")
    for method in data.methods:
        line = part[part["method"] == method]
        if line.empty:
            continue
        style = styles[method]
        if line["is_reference"].all():
            ax.fill_between(line["k"], line["low"], line["high"], color=PAPER_GRAY, alpha=_BAND, linewidth=0)
        (drawn,) = ax.plot(line["k"], line["value"], color=style.color, linewidth=1.3, zorder=3)
        drawn.set_dashes(style.dashes or (None, None))
        for whole, face in ((True, style.color), (False, "white")):
            shown = line[(line["trials"] >= line["planned"]) == whole]
            if shown.empty:
                continue
            ax.plot(
                shown["k"],
                shown["value"],
                style.marker,
                color=style.color,
                markerfacecolor=face,
                markersize=5,
                markeredgewidth=0.8,
                zorder=4 if whole else 5,
            )
    _rate_axis(ax, part["k"])
    ax.set_title(dataset_name(dataset), color=ink)
    ax.set_xlabel("labeled graphs per class")
    ax.set_ylabel(_unit(data))
    tidy_axes(ax)


def _unit(data: Curves) -> str:
    return f"{noun(data.metric).replace('classification ', '')} (%)"


def _rate_axis(ax: Any, rates: pd.Series[int], most: int = 6) -> None:
    found = sorted(rates.unique())
    found = found if len(found) <= most else [found[0], found[len(found) // 2], found[-1]]
    ax.set_xscale("log")
    ax.set_xticks(found, [str(rate) for rate in found])
    ax.set_xticks([], minor=True)
    ax.margins(x=0.06)


def label_rate_figure(data: Curves, width: float = TEXT) -> Any:
    """All panels with one legend above them; all panels span the same range, so that slopes are comparable."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    names = data.with_lines
    if not names:
        raise NothingToDraw("every dataset has a single label rate, which makes no line; see the forest plot")
    wide = 1 if width < 5 else min(3, len(names))
    high = -(-len(names) // wide)
    with drawing():
        figure = Figure(figsize=(width if wide > 1 else min(width, 4.6), 2.3 * high + 0.7), layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False)
        for place, ax in enumerate(axes.flat):
            if place < len(names):
                draw_panel(ax, data, names[place])
                ax.set_ylabel(_unit(data) if place % wide == 0 else "")
                ax.set_xlabel("labeled graphs per class" if place + wide >= len(names) else "")
            else:
                ax.set_axis_off()
        share_spans(list(axes.flat)[: len(names)])
        handles = method_keys(data.styles())
        if data.points["is_reference"].any():
            handles.append(Patch(color=PAPER_GRAY, alpha=_BAND, linewidth=0, label="95 % interval of plain training"))
        figure.legend(handles=handles, loc="outside upper center", ncols=4 if wide > 1 else 2, handlelength=3.5)
        if (data.points["trials"] < data.points["planned"]).any():
            figure.supxlabel("hollow marker: fewer trials than planned", fontsize=7)
    return figure


def share_spans(axes: Sequence[Any]) -> None:
    """Panels may start at different heights, but one centimetre is as many points in all of them."""
    span = max(top - bottom for bottom, top in (ax.get_ylim() for ax in axes))
    for ax in axes:
        middle = sum(ax.get_ylim()) / 2
        ax.set_ylim(middle - span / 2, middle + span / 2)


def method_keys(styles: dict[str, Style]) -> list[Any]:
    """Legend entries: a piece of each method's line with its marker."""
    from matplotlib.lines import Line2D

    handles = []
    for name, style in styles.items():
        line = Line2D([], [], color=style.color, marker=style.marker, markersize=5, linewidth=1.3)
        line.set_label(plain_text(name))
        line.set_dashes(style.dashes or (None, None))
        handles.append(line)
    return handles


def difference_curves_figure(data: Curves, width: float = TEXT, ink: str = INK) -> Any:
    """The difference to plain training over the label rates, with 95 % bands: one row per method, one common scale."""
    from matplotlib.figure import Figure

    part = data.points[data.points["paired"].notna() & data.points["dataset"].isin(data.with_lines)]
    if part.empty:
        raise NothingToDraw("no method has a difference to plain training at two label rates of a dataset")
    methods, names, styles = methods_in_order(part["method"]), panels(part), data.styles(ink)
    with drawing(ink, 7.5):
        size = (width, 0.85 * len(methods) + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(len(methods), len(names), squeeze=False, sharex="col", sharey=True)
        for row, method in enumerate(methods):
            for column, dataset in enumerate(names):
                ax = axes[row][column]
                line = part[(part["method"] == method) & (part["dataset"] == dataset)].sort_values("k")
                ax.axhline(0, color=ink, linewidth=0.6)
                color = styles[method].color
                ax.fill_between(
                    line["k"], line["difference_low"], line["difference_high"], color=color, alpha=0.22, lw=0
                )
                ax.plot(line["k"], line["difference_mean"], styles[method].marker, ls="-", color=color, ms=3, lw=1.1)
                _rate_axis(ax, part.loc[part["dataset"] == dataset, "k"], 3 if width < 5 else 6)
                tidy_axes(ax, "y")
                ax.set_title(dataset_name(dataset, short=width < 5) if row == 0 else "")
            axes[row][0].set_ylabel(plain_text(method), color=ink)
        ends = np.nanmax(part[["difference_low", "difference_high"]].abs().to_numpy())
        axes[0][0].set_ylim(-1.05 * ends, 1.05 * ends)
        words = ["labeled graphs per class", "difference to plain training (percentage points), with 95 % bands"]
        figure.supxlabel(("\n" if width < 5 else "; ").join(words), fontsize=7.5, color=ink)
    return figure
