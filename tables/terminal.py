"""Filled tables and the comparison on a terminal; names are printed as they are, whatever markup they hold."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tables.compare import HEADS, OUTSIDE, WITHIN, Comparison, contradiction_words
from tables.grid import Grid
from tables.wording import shown


def show_grid(grid: Grid, console: Console) -> None:
    """The numbers of one table."""
    table = Table(title=Text(grid.name), header_style="")
    table.add_column("")
    for column in grid.spec.columns:
        table.add_column(Text(f"{column.span}\n{column.head}".strip()), justify="right", no_wrap=True)
    for group in grid.groups:
        for line in group:
            cells: list[Any] = [Text(line.name)]
            for entry in line.entries:
                cell = shown(entry, "values", grid.mark)
                style = "bold" if cell.bold else "underline" if cell.underlined else ""
                cells.append(Text.assemble((cell.main, style), f" {cell.spread} {' '.join(cell.raised)}".rstrip()))
            table.add_row(*cells)
        table.add_section()
    console.print(table)


def show_comparison(found: Comparison, console: Console) -> None:
    """Ours beside the paper's, then in sum, then where the paper contradicts itself."""
    table = Table(title=Text(f"Ours and the paper's ({'; '.join(found.conditions)})"))
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="right" if 3 <= place <= 7 else "left", no_wrap=True)
    colours = {WITHIN: "green", OUTSIDE: "red"}
    for line in found.lines:
        *cells, verdict = (Text(word) for word in line.words())
        verdict.stylize(colours.get(line.verdict, ""))
        table.add_row(*cells, verdict)
    console.print(table)
    for words in found.sums():
        console.print(words, markup=False, highlight=False)
    if found.touched:
        console.print("! The paper contradicts itself here:", markup=False)
    for contradiction in found.touched:
        console.print(f"  {contradiction_words(contradiction)}", markup=False, highlight=False)
