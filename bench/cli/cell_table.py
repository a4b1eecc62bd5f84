"""The cells of `bench status` as lines of text, in as many columns as the terminal has room for.

A ledger may have hundreds of cells; a table of rich's would take longer to draw than the ledger to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.markup import escape

GAP = "  "
SHORTEST = 10  # what is left of a name at least
_PLACE = ("dataset", "k", "augmenter", "model")  # left out where it is the same in every cell
_MODEL = ("learner", "backbone", "readout")  # one column where there is little room
_SHORT = {"accuracy": "acc.", "collapsed": "coll."}
_COLORS = {"failed": "red", "stale": "yellow", "missing": "yellow"}
_NUMBERS = ("k", "done", *_COLORS, *_SHORT, *_SHORT.values())


@dataclass(frozen=True)
class _Column:
    name: str
    texts: tuple[str, ...]

    @property
    def width(self) -> int:
        return max(map(len, (self.name, *self.texts)))

    @property
    def constant(self) -> bool:
        return len(self.texts) > 1 and len(set(self.texts)) == 1

    def cut(self, width: int) -> _Column:
        """Names without their middle: what tells settings of one method apart stands at the end."""
        head, tail = width // 2, width - width // 2 - 1
        return replace(self, texts=tuple(t if len(t) <= width else f"{t[:head]}…{t[-tail:]}" for t in self.texts))

    def lines(self) -> list[str]:
        """Heading and texts at one width, colored where there is something to see to."""
        align = str.rjust if self.name in _NUMBERS else str.ljust
        color = _COLORS.get(self.name)
        shown = ((text, escape(align(text, self.width))) for text in self.texts)
        texts = [f"[{color}]{padded}[/]" if color and text != "0" else padded for text, padded in shown]
        return [f"[bold]{align(self.name, self.width)}[/]", *texts]


def cell_lines(rows: Sequence[dict[str, str]], width: int) -> list[str]:
    """The rows under their headings. Where they are too wide for the terminal, a line above has what they share."""
    columns = [_Column(name, tuple(row[name] for row in rows)) for name in rows[0]] if rows else []
    above = ""
    if _width(columns) > width:
        columns, above = _narrowed(columns)
    while _width(columns) > width and (long := [c for c in columns if c.name in _PLACE and c.width > SHORTEST]):
        longest = max(long, key=lambda column: column.width)
        least = max(SHORTEST, longest.width - (_width(columns) - width), len(longest.name))
        columns = [column.cut(least) if column is longest else column for column in columns]
        if longest.width == least:
            break
    lines = [GAP.join(parts).rstrip() for parts in zip(*(column.lines() for column in columns), strict=True)]
    return [above, *lines] if above else lines


def _width(columns: Sequence[_Column]) -> int:
    return sum(column.width for column in columns) + len(GAP) * (len(columns) - 1)


def _narrowed(columns: Sequence[_Column]) -> tuple[list[_Column], str]:
    """Without what says nothing: what every cell has in common goes into one line, counts of zero go away."""
    given = {column.name: column for column in columns}
    model = _Column("model", tuple(map(_model, *(given[name].texts for name in _MODEL))))
    shared, kept = [], []
    for name, column in given.items():
        if name == "learner":
            column = model
        elif name in _MODEL:
            continue
        if column.constant and column.name in _PLACE:
            shared.append(f"{column.name} {column.texts[0]}")
        elif not (name in (*_COLORS, "collapsed") and set(column.texts) <= {"0", "0%", ""}):
            kept.append(replace(column, name=_SHORT.get(name, column.name)))
    return kept, f"in every cell: {escape(', '.join(shared))}" if shared else ""


def _model(learner: str, backbone: str, readout: str) -> str:
    return f"{backbone} {readout}" if backbone else learner
