"""The rows that `perf.py` measures, as a Markdown table and a plot over k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.plan.cells import Cell

HEAD = """
| dataset | k | method | fast s | of it once | reference s | plain s | x reference | x plain | % matmul | MiB |
|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass
class Row:
    """Seconds per trial of each implementation; the plain loop supports only two methods and one backbone."""

    cell: Cell
    fast: float
    once: float
    reference: float | None
    plain: float | None
    flops: float | None
    memory: float | None = None


def draw_growth(rows: Sequence[Row], file: Path) -> None:
    """Plot seconds per trial against k, one line per dataset and method."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 3.2), layout="constrained")
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        lines.setdefault(f"{row.cell.dataset} {row.cell.augmenter.label}", []).append((row.cell.k, row.fast))
    for label, points in lines.items():
        axes.plot(*zip(*sorted(points), strict=True), marker="o", markersize=3, label=label)
    axes.set(xlabel="k, labeled graphs per class", ylabel="seconds per trial", xlim=(0, None), ylim=(0, None))
    axes.legend(fontsize=7)
    figure.savefig(file)


def show(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def line(row: Row, rate: float) -> str:
    """One row of the table in Markdown."""
    share = None if row.flops is None else 100 * row.flops / row.fast / rate
    parts = [
        row.cell.dataset,
        str(row.cell.k),
        " ".join([row.cell.augmenter.label, *row.cell.training.preset.split("+")[1:]]),
        show(row.fast),
        show(row.once),
        show(row.reference),
        show(row.plain),
        show(row.reference / row.fast if row.reference else None, 1),
        show(row.plain / row.fast if row.plain else None, 1),
        show(share, 0),
        show(row.memory, 0),
    ]
    return "| " + " | ".join(parts) + " |"
