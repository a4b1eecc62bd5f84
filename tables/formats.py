"""Filled tables as CSV (one line per cell, with everything known about it) and as Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd

from tables.grid import Grid
from tables.selection import Index
from tables.wording import PooledLine, Shown, caption, notes, pooled_notes, shown, signed, three_way_words


def tidy(grid: Grid, index: Index) -> pd.DataFrame:
    """One line per cell: fractions and seconds, not rounded, with the comparison to plain training."""
    lines: list[dict[str, Any]] = []
    for line in grid.lines:
        for entry in line.entries:
            cell = index.cells.get(entry.key or "", {})
            place, difference = entry.coordinate, entry.difference
            facts: dict[str, Any] = {"table": grid.name, "row": line.name, "settings": line.settings}
            facts |= {
                name: getattr(place, name) for name in ("dataset", "k", "augmenter", "backbone", "readout", "learner")
            }
            facts |= {name: cell.get(name) for name in ("features", "splits")}
            facts |= {
                "tuned_how": cell.get("tuned_how"),
                "preset": cell.get("training.preset"),
                "cell": entry.key,
                "metric": grid.metric,
            }
            facts |= {"mean": entry.value.mean, "std": entry.value.std, "trials": entry.value.n}
            facts |= {"planned": entry.planned, "best": entry.best, "tied_with_best": entry.tied}
            for name in ("n", "folds", "mean", "low", "high", "p", "worse", "equal", "better", "detectable"):
                value = getattr(difference, name) if difference else math.nan
                facts[f"difference_{'trials' if name == 'n' else name}"] = value
            facts |= {"difference_p_holm": entry.p_holm, "difference_p_table": entry.p_table}
            facts |= {"collapsed": entry.collapsed}
            facts |= {"seconds_augment": entry.seconds_augment, "seconds_train": entry.seconds_train}
            lines.append(facts)
    return pd.DataFrame(lines)


def markdown(grid: Grid, kind: str = "values") -> str:
    """A Markdown table with its caption above and notes below."""
    heads = [f"{c.span} {c.head}".strip() if c.span else c.head for c in grid.spec.columns]
    rows = [[line.name, *(_cell(shown(entry, kind, grid.mark)) for entry in line.entries)] for line in grid.lines]
    text = pipe_table([grid.spec.corner if grid.spec.corner != "k" else "", *heads], rows, raw_from=1)
    below = "".join(f"\n- {escape(note)}" for note in notes(grid, kind))
    return f"{escape(caption(grid, kind))}\n\n{text}\n{below}\n"


POOLED_HEADS = ("Method", "k", "Datasets", "Difference", "95 % interval", "p (Holm)", "Worse / equal / better (%)")


def pooled_words(line: PooledLine) -> list[str]:
    """The cells of one line of a pooled table."""
    found = line.found
    return [
        line.row,
        str(line.k),
        str(found.datasets),
        signed(found.mean),
        f"{signed(found.low)} to {signed(found.high)}",
        "" if math.isnan(line.p_holm) else f"{line.p_holm:.3f}",
        three_way_words(found.worse, found.equal, found.better),
    ]


def pooled_markdown(lines: Sequence[PooledLine]) -> str:
    """Each method over the datasets of a table."""
    text = pipe_table(POOLED_HEADS, [pooled_words(line) for line in lines])
    return text + "\n" + "".join(f"\n- {escape(note)}" for note in pooled_notes(lines)) + "\n"


def _cell(cell: Shown) -> str:
    main = f"**{cell.main}**" if cell.bold else f"_{cell.main}_" if cell.underlined else cell.main
    raised = " ".join(escape(word) for word in cell.raised)
    return " ".join(part for part in (main, cell.spread, raised) if part)


def pipe_table(heads: Sequence[str], rows: Sequence[Sequence[str]], raw_from: int | None = None) -> str:
    """A Markdown table; cells from column `raw_from` on are already Markdown."""
    lines = [_line([escape(head) for head in heads]), _line(["---"] + ["---:"] * (len(heads) - 1))]
    for row in rows:
        lines.append(_line([c if raw_from is not None and i >= raw_from else escape(c) for i, c in enumerate(row)]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Escape text so that Markdown prints it literally: no markup, no HTML, no broken tables."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$&])", r"\\\1", " ".join(text.split()))
