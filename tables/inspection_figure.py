"""The figure of `bench inspect`: drawings of some graphs of each kind, and their distributions overlaid."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tables.style import INK, plain_text

MOST_DRAWN = 100  # number of nodes; larger graphs are shown as adjacency matrices
STRAIGHT = 50  # degrees up to this value are shown on a linear axis
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_AXES = {
    "density": "density of a graph",
    "degree": "degree of a node",
    "clustering": "clustering of a node",
    "spectrum": "normalized Laplacian eigenvalue",
}


@dataclass(frozen=True)
class Sketch:
    """A graph to draw: its size, its edges (one row each, in either direction), and optional weights."""

    nodes: int
    edges: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class Panel:
    """One kind of graphs: some to draw, and weighted values by name (density, degree, clustering, spectrum)."""

    label: str
    sketches: Sequence[Sketch]
    samples: dict[str, tuple[np.ndarray, np.ndarray]]


def inspection_figure(title: str, panels: Sequence[Panel]) -> Any:
    """A row of drawings for each panel that has some, and the cumulative distributions of all panels below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = [panel for panel in panels if panel.sketches]
    wide = max((len(panel.sketches) for panel in drawn), default=1)
    with mpl.rc_context({"font.size": 8, "axes.linewidth": 0.6}):
        figure = Figure(figsize=(8.4, 1.35 * len(drawn) + 2.5), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=[1.35 * max(len(drawn), 1), 2.3])
        above, below = halves
        figure.suptitle(plain_text(title), fontsize=9.5)
        colors = colors_of(panels)
        grid = above.subplots(max(len(drawn), 1), wide, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for row, panel in zip(grid, drawn, strict=False):
            for ax, sketch in zip(row, panel.sketches, strict=False):
                draw_graph(ax, sketch, colors[panel.label])
            row[0].set_axis_on()
            row[0].set_ylabel(plain_text(panel.label), color=colors[panel.label], fontweight="bold")
            row[0].set(xticks=[], yticks=[])
            for spine in row[0].spines.values():
                spine.set_visible(False)
        lower = below.subplots(1, len(_AXES))
        for ax, name in zip(lower, _AXES, strict=True):
            draw_distributions(ax, panels, name, colors)
        lower[0].set_ylabel("cumulative share", fontsize=7)
        handles, labels = below.axes[0].get_legend_handles_labels()
        below.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    return figure


def colors_of(panels: Sequence[Panel]) -> dict[str, str]:
    """Black for the first panel, gray for one without drawings, and a different color for each of the others."""
    found, taken = {}, 0
    for place, panel in enumerate(panels):
        if place == 0:
            found[panel.label] = INK
        elif not panel.sketches:
            found[panel.label] = "#8A8A8A"
        else:
            found[panel.label] = _COLORS[taken % len(_COLORS)]
            taken += 1
    return found


def draw_graph(ax: Any, sketch: Sketch, color: str) -> None:
    """Nodes and links, or the adjacency matrix sorted by degree if there are too many nodes."""
    from matplotlib.collections import LineCollection

    n, (pairs, weights) = sketch.nodes, unique_pairs(sketch)
    if n > MOST_DRAWN:
        order = np.argsort(-np.bincount(pairs.ravel(), minlength=n), kind="stable")
        place = np.empty(n, dtype=int)
        place[order] = np.arange(n)
        size = min(n, 240)
        cells = place[np.concatenate([pairs, pairs[:, ::-1]])] * size // n
        counts = np.zeros((size, size))
        np.add.at(counts, (cells[:, 0], cells[:, 1]), 1.0)
        ax.imshow(np.minimum(counts, 1.0), cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    else:
        positions = spring_layout(n, pairs)
        fade = float(np.clip(60 / max(len(pairs), 1), 0.04, 0.7))
        lines = LineCollection(positions[pairs], colors=color, linewidths=0.8 * np.minimum(weights, 2.0), alpha=fade)
        ax.add_collection(lines)
        ax.scatter(*positions.T, s=max(1.5, 9 - n / 12), color=color, linewidths=0, zorder=3)
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.08)
    share = len(pairs) / (n * (n - 1) / 2) if n > 1 else 0.0
    ax.set_title(f"n = {n}, density {share:.2f}", fontsize=6.5, color=INK, pad=2)


def unique_pairs(sketch: Sketch) -> tuple[np.ndarray, np.ndarray]:
    """Undirected edges, each once, with the smaller end first, and their weights (1 if there are none)."""
    ends = np.sort(np.asarray(sketch.edges, dtype=np.int64).reshape(-1, 2), axis=1)
    weights = np.ones(len(ends)) if sketch.weights is None else np.asarray(sketch.weights, dtype=float)
    apart = ends[:, 0] != ends[:, 1]
    pairs, first = np.unique(ends[apart], axis=0, return_index=True)
    return pairs, weights[apart][first]


def spring_layout(n: int, pairs: np.ndarray, steps: int = 120) -> np.ndarray:
    """A spring layout with a pull to the center, which keeps components together.

    Always the same for the same graph.
    """
    angle = 2 * np.pi * np.arange(n) / max(n, 1)
    at = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + 0.01 * np.arange(n)[:, None] / max(n, 1))
    joined = np.zeros((n, n))
    joined[pairs[:, 0], pairs[:, 1]] = joined[pairs[:, 1], pairs[:, 0]] = 1.0
    rest = 1.5 / np.sqrt(max(n, 1))
    for step in range(steps):
        apart = at[:, None] - at[None]
        length = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-3)
        force = rest**2 / length**2 - joined * length / rest
        move = (apart * force[:, :, None]).sum(axis=1) - 0.5 * at
        size = np.maximum(np.sqrt((move**2).sum(axis=1, keepdims=True)), 1e-9)
        at = at + move / size * np.minimum(size, 0.15 * (1 - step / steps))
    return at


def draw_distributions(ax: Any, panels: Sequence[Panel], name: str, colors: dict[str, str]) -> None:
    """Cumulative shares: on a linear axis, the area between two lines is their Wasserstein-1 distance."""
    for panel in panels:
        values, weights = panel.samples[name]
        style = {"linestyle": "-" if panel.sketches else ":", "color": colors[panel.label]}
        width = 1.6 if colors[panel.label] == INK else 1.1
        ax.ecdf(values, weights, label=plain_text(panel.label), linewidth=width, **style)
    if name == "degree" and max(panel.samples[name][0].max() for panel in panels) > STRAIGHT:
        ax.set_xscale("symlog", linthresh=10)  # otherwise the degrees of near-complete graphs would hide all others
    ax.set_xlabel(_AXES[name], fontsize=7)
    ax.set_ylim(0, 1.02)
    ax.tick_params(labelsize=6.5)
    ax.grid(True, color="#999999", alpha=0.3, linewidth=0.5)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def save_picture(figure: Any, path: Path) -> None:
    """Save the figure as PNG; a palette of 128 colors is enough and takes a third of the bytes."""
    from PIL import Image

    stream = io.BytesIO()
    figure.savefig(stream, dpi=130)
    Image.open(stream).convert("RGB").quantize(128).save(path, optimize=True)
