"""Filled tables and the comparison in the terminal; names are printed literally, whatever markup they contain."""

from __future__ import annotations

import math

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tables.compare import HEADS, OUTSIDE, WITHIN, Comparison, contradiction_words
from tables.conclusion import Conclusion, Finding
from tables.grid import Grid, shown_percent
from tables.style import dataset_name
from tables.wording import COLLAPSED, UNPAIRED, Shown, shown, signed


def show_grid(grid: Grid, console: Console) -> None:
    """The numbers of one table, in as many parts as the width of the terminal requires."""
    texts = {line: [_text(shown(entry, "values", grid.mark)) for entry in line.entries] for line in grid.lines}
    first = max(len(line.name) for line in grid.lines)
    widths = [
        max(len(column.head), len(column.span) // 2, *(len(cells[place]) for cells in texts.values())) + 3
        for place, column in enumerate(grid.spec.columns)
    ]
    start, part = 0, 0
    while start < len(widths):
        end = start + 1
        while end < len(widths) and first + 4 + sum(widths[start : end + 1]) <= console.width:
            end += 1
        part += 1
        table = Table(title=Text(grid.name) if part == 1 else None, header_style="", box=box.SIMPLE, title_style="bold")
        table.add_column("", no_wrap=True)
        for column in grid.spec.columns[start:end]:
            table.add_column(Text(f"{column.span}\n{column.head}".strip()), justify="right")
        for group in grid.groups:
            for line in group:
                table.add_row(Text(line.name), *texts[line][start:end])
            table.add_section()
        console.print(table)
        start = end
    for words in [f"Tuned: {words}." for words in grid.context.tuning] + [UNPAIRED] * grid.context.unpaired:
        console.print(words, markup=False, highlight=False, soft_wrap=True)


def run_table(found: Conclusion, planned: int) -> Table:
    """Means with their differences to plain training; only significantly better ones are bold."""
    table = Table(header_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for dataset, k in found.columns:
        table.add_column(Text(f"{dataset_name(dataset)}\nk={k}"), justify="right")
    for name in found.rows:
        cells = [_finding(found.findings.get((name, place)), planned) for place in found.columns]
        table.add_row(Text(name), *cells)
    return table


def _finding(one: Finding | None, planned: int) -> Text:
    if one is None:
        return Text("-")
    if not one.value.n:
        return Text("none done", "red")
    words = Text(shown_percent(one.value.mean), "bold" if one.sign == "+" else "")
    if one.is_plain:
        words.append("  plain", "dim")
    elif one.difference is not None and one.difference.n:
        half = "" if math.isnan(one.difference.half_width) else f" ±{shown_percent(one.difference.half_width)}"
        words.append(f"  {signed(one.difference.mean)}{half}{'*' if one.sign else ''}", "" if one.sign else "dim")
    if one.collapsed > 0:
        words.append(f" c{max(1, round(100 * one.collapsed))}", "yellow")
    if one.value.n < planned:
        words.append(f" {one.value.n}/{planned}", "red")
    return words


def run_notes(found: Conclusion) -> list[str]:
    """How to read the table, as far as it applies."""
    held = list(found.findings.values())
    notes = []
    if any(one.difference is not None for one in held):
        notes.append("beside a mean: difference to plain training in points, ± half of its 95 % interval over folds")
    if any(one.sign for one in held):
        notes.append("*: significant at 5 % (Holm's correction over the column); bold: significantly better")
    if any(one.collapsed > 0 for one in held):
        notes.append(COLLAPSED.rstrip("."))
    return notes


def _text(cell: Shown) -> Text:
    style = "bold" if cell.bold else "underline" if cell.underlined else ""
    return Text.assemble((cell.main, style), f" {cell.spread} {' '.join(cell.raised)}".rstrip(), no_wrap=True)


def show_comparison(found: Comparison, console: Console) -> None:
    """Our results next to the paper's, then a summary, then the paper's contradictions."""
    colors = {WITHIN: "green", OUTSIDE: "red"}
    console.print(f"Ours and the paper's ({'; '.join(found.conditions)})", markup=False, highlight=False)
    for name in dict.fromkeys(line.theirs.table for line in found.lines):
        table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), title=Text(name), title_style="bold", header_style="")
        for place, head in enumerate(HEADS[1:]):
            table.add_column(head, justify="right" if 2 <= place <= 6 else "left", no_wrap=True)
        for line in found.lines:
            if line.theirs.table == name:
                *cells, verdict = (Text(word) for word in line.words()[1:])
                verdict.stylize(colors.get(line.verdict, ""))
                table.add_row(*cells, verdict)
        console.print(table)
    for words in found.sums():
        console.print(words, markup=False, highlight=False)
    if found.touched:
        console.print("! The paper contradicts itself here:", markup=False)
    for contradiction in found.touched:
        console.print(f"  {contradiction_words(contradiction)}", markup=False, highlight=False)
