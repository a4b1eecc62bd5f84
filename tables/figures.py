"""The label-rate figure and the critical-difference diagram, for any datasets that have numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bench.registry import UserError, unknown
from tables.grid import Request
from tables.selection import Index
from tables.specs import FIGURE, LONG_NAMES, METHODS, method_name
from tables.statistics import Ranking, ranking
from tables.wording import NOUNS
from tables.writing import whole_file

FORMATS = ("pdf", "svg", "png")
INK = "#000000"
# Okabe and Ito's colours without the yellow (too pale on paper) and with a lighter blue (for dark pages), each with a
# marker and dashes of its own, so that neither colour blindness nor a grey print takes a method away
_COLOURS = ("", "#56B4E9", "#009E73", "#E69F00", "#CC79A7", "#8A8A8A", "#1F7FC4", "#D55E00")
_MARKERS = ("o", "s", "^", "v", "D", "P", "X", "<")
_DASHES: tuple[Any, ...] = ((1, 1), (4, 1.5), (2, 1), (3, 1, 1, 1), (5, 1, 1, 1, 1, 1), (1, 2), "", (6, 1))


class NothingToDraw(UserError):
    """No finished trial has the figure's backbone and readout."""


@dataclass(frozen=True)
class Style:
    """How one method is drawn."""

    colour: str
    marker: str
    dashes: Any


@dataclass(frozen=True)
class Curves:
    """The points of the figure: one row a (dataset, k, method), in percent."""

    points: pd.DataFrame  # dataset, k, method, value, trials, planned
    methods: tuple[str, ...]
    metric: str

    @property
    def datasets(self) -> list[str]:
        order = {name: place for place, (name, _) in enumerate(FIGURE.panels)}
        return sorted(self.points["dataset"].unique(), key=lambda name: (order.get(name, len(order)), name))

    def styles(self, ink: str = INK) -> dict[str, Style]:
        known = {row.name: place for place, row in enumerate(METHODS)}
        found, extra = {}, len(METHODS)
        for method in self.methods:
            place = known.get(method, extra)
            extra += method not in known
            turn = place + place // len(_MARKERS)  # a second round pairs every marker with another colour
            found[method] = Style(
                _COLOURS[turn % len(_COLOURS)] or ink, _MARKERS[place % len(_MARKERS)], _DASHES[turn % len(_DASHES)]
            )
        return found


def curves(
    index: Index, request: Request, backbone: str = "gcn", readout: str = "mean", datasets: Sequence[str] = ()
) -> Curves:
    """Means over the finished trials: the paper's methods on its datasets; any method on any other dataset."""
    settings = request.settings[0]
    paper = {row.augmenter for row in METHODS}
    there = [c for c in index.coordinates([settings]) if (c.backbone, c.readout) == (backbone, readout)]
    there = [c for c in there if c.augmenter in paper or c.dataset not in LONG_NAMES]
    known = {c.dataset for c in there}
    for name in datasets:
        if name not in known:
            raise unknown("dataset with results", name, known)
    wanted = set(datasets) or (known & set(LONG_NAMES)) or known
    there = [c for c in there if c.dataset in wanted]
    chosen = index.choose(there, settings, request.pick)
    index.check_agreement(chosen.values(), request.pick)
    points = []
    for place, key in chosen.items():
        values, planned = index.results.values(key, request.metric), index.results.planned_trials(key)
        if request.strict and len(values) < planned:
            raise UserError(f"{place} has {len(values)} of {planned} trials; run them, or leave out --strict")
        if len(values):
            name = method_name(place.augmenter, backbone, readout)
            points.append((place.dataset, place.k, name, 100 * float(values.mean()), len(values), planned))
    if not points:
        raise NothingToDraw(
            f"no finished {settings} trial with backbone {backbone} and readout {readout}; run a grid that has them"
        )
    frame = pd.DataFrame(points, columns=["dataset", "k", "method", "value", "trials", "planned"])
    ordered = [method_name(row.augmenter, backbone, readout) for row in METHODS]
    seen = set(frame["method"])
    methods = [name for name in ordered if name in seen] + sorted(seen - set(ordered))
    return Curves(frame.sort_values(["dataset", "k"]), tuple(methods), request.metric)


def draw_panel(ax: Any, data: Curves, dataset: str, ink: str = INK) -> None:
    """One dataset's lines; a hollow marker where trials are missing."""
    import seaborn as sns

    styles = data.styles(ink)
    part = data.points[data.points["dataset"] == dataset]
    sns.lineplot(
        part,
        x="k",
        y="value",
        hue="method",
        style="method",
        hue_order=data.methods,
        style_order=data.methods,
        palette={name: style.colour for name, style in styles.items()},
        markers={name: style.marker for name, style in styles.items()},
        dashes={name: style.dashes for name, style in styles.items()},
        errorbar=None,
        estimator=None,
        legend=False,
        markersize=5.5,
        markeredgewidth=0.4,
        linewidth=1.3,
        ax=ax,
    )
    for point in part[part["trials"] < part["planned"]].itertuples():
        style = styles[str(point.method)]
        ax.plot(
            [point.k],
            [point.value],
            marker=style.marker,
            color=style.colour,
            markerfacecolor="white",
            markersize=6,
            linestyle="none",
            zorder=5,
        )
    rates = sorted(part["k"].unique())
    ax.set_xscale("log")
    ax.set_xticks(rates, [str(rate) for rate in rates])
    ax.set_xticks([], minor=True)
    ax.margins(x=0.06)
    ax.set_title(plain_text(LONG_NAMES.get(dataset, dataset)), color=ink, fontsize=10)
    ax.set_xlabel("labeled graphs per class")
    ax.set_ylabel(f"{NOUNS[data.metric].replace('classification ', '')} (%)")
    ax.grid(True, color="#999999", alpha=0.3, linewidth=0.5)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def label_rate_figure(data: Curves) -> Any:
    """All panels with one legend above them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    wide = min(3, len(data.datasets))
    high = -(-len(data.datasets) // wide)
    with mpl.rc_context({"font.size": 8.5, "axes.linewidth": 0.7}):
        figure = Figure(figsize=(max(3.1 * wide, 4.6), 2.45 * high + 0.7), layout="constrained")
        panels = figure.subplots(high, wide, squeeze=False)
        for place, ax in enumerate(panels.flat):
            if place < len(data.datasets):
                draw_panel(ax, data, data.datasets[place])
            else:
                ax.set_axis_off()
        handles = []
        for name, style in data.styles().items():
            line = Line2D([], [], color=style.colour, marker=style.marker, markersize=5.5, linewidth=1.3)
            line.set_label(plain_text(name))
            line.set_dashes(style.dashes or (None, None))
            handles.append(line)
        columns = min(len(handles), 4 if wide > 1 else 3)
        figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False, handlelength=3.5)
        if (data.points["trials"] < data.points["planned"]).any():
            figure.supxlabel("hollow marker: fewer trials than planned", fontsize=7.5)
    return figure


def rank_methods(data: Curves, k: int) -> Ranking | None:
    """Mean ranks over the datasets at one label rate; None when fewer than two datasets or methods are complete."""
    part = data.points[data.points["k"] == k]
    means = part.pivot(index="dataset", columns="method", values="value")
    return ranking(means[[name for name in data.methods if name in means.columns]])


def ranking_rates(data: Curves) -> list[int]:
    """The label rates at which methods can be ranked."""
    return [int(k) for k in sorted(data.points["k"].unique()) if rank_methods(data, int(k)) is not None]


def critical_difference_figure(found: Ranking, ink: str = INK) -> Any:
    """Mean ranks on a line, the best at the left; a bar joins methods that Nemenyi's test cannot tell apart."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from scikit_posthocs import critical_difference_diagram

    safe = {name: plain_text(name) for name in found.mean_ranks.index}
    with mpl.rc_context({"font.size": 9, "text.color": ink, "xtick.color": ink, "axes.edgecolor": ink}):
        figure = Figure(figsize=(6.4, 1.5 + 0.19 * len(safe)), layout="constrained")
        ax = figure.subplots()
        drawn = critical_difference_diagram(
            found.mean_ranks.rename(safe),
            found.p_pairs.rename(index=safe, columns=safe),
            ax=ax,
            label_fmt_left="{label} ({rank:.2f})",
            label_fmt_right="({rank:.2f}) {label}",
            color_palette={name: ink for name in safe.values()},
            elbow_props={"linewidth": 1.1},
            marker_props={"s": 16},
            crossbar_props={"color": ink, "linewidth": 3, "alpha": 0.6},
            text_h_margin=0.25,
        )
        for line in (line for bar in drawn["crossbars"] for line in bar):
            line.set_xdata(sorted(line.get_xdata()))  # points come from a set, in another order in each process
        ax.set_xlim(0.4, len(safe) + 0.6)
        ax.set_xticks(range(1, len(safe) + 1))
        words = f"mean rank over {len(found.blocks)} datasets (1 is best), CD = {found.critical_difference:.2f}"
        ax.set_title(words, fontsize=9, color=ink, pad=14)
    return figure


def plain_text(text: str) -> str:
    """A name that matplotlib draws as it is: a dollar sign starts no formula, a leading underscore hides no label."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())  # no glyph for the others
    text = text.replace("\\", "\\\\") if "$" in text else text
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def save(figure: Any, folder: Path, name: str, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write the figure in every format; no dates inside, so that the same numbers give the same file."""
    import matplotlib as mpl

    paths = [folder / f"{name}.{kind}" for kind in formats]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
            with mpl.rc_context({"svg.hashsalt": name, "pdf.fonttype": 42}), whole_file(path) as part:
                figure.savefig(part, dpi=200, metadata=metadata)
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; choose another --out") from error
    return paths


def inline_svg(figure: Any, salt: str, ink: str) -> str:
    """The figure as an SVG element for a page: `ink` becomes the page's own text colour, light or dark."""
    import matplotlib as mpl

    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :].replace(ink, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # ids of several figures on one page must not meet
    names: Sequence[str] = re.findall(r'\bid="([^"]+)"', text)
    for name in sorted(set(names), key=len, reverse=True):
        text = text.replace(f'id="{name}"', f'id="{salt}-{name}"').replace(f"#{name})", f"#{salt}-{name})")
        text = text.replace(f'"#{name}"', f'"#{salt}-{name}"')
    return text
