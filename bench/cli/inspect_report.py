"""The report of `bench inspect` in the terminal: the table, the caveats, and the paths of the files."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from bench import api
from bench.inspecting.looking import Inspection
from bench.inspecting.request import InspectRequest
from bench.inspecting.summary import remarks, rows


def inspect_and_report(request: InspectRequest, console: Console | None = None) -> api.InspectOutcome:
    """Inspect, then print the report."""
    console = console or Console()
    with console.status("looking") as status:
        outcome = api.inspect(request, status.update)
    console.print(table(outcome.seen))
    for line in remarks(outcome.seen):
        console.print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)
    console.print(f"picture: {outcome.picture}   figures: {outcome.figures}", highlight=False, soft_wrap=True)
    return outcome


def table(seen: Inspection) -> Table:
    """One column per method."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    drawn.add_column("", no_wrap=True)
    for column in seen.columns:
        drawn.add_column(column.label, justify="right", overflow="fold")
    for row in rows(seen):
        drawn.add_row(*row)
    return drawn
