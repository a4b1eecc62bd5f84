"""`bench list`: everything that can be chosen."""

from __future__ import annotations

from typing import Annotated

import typer


def list_plugins(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show the settings of this plug-in, the contents of this grid, or the layout of this table."
        ),
    ] = None,
) -> None:
    """List learners, augmenters, models, datasets, metrics, presets, grids and tables, or describe one by NAME."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from bench.cli.catalogue import every_name, named

    console = Console()
    if name is not None:
        for one in named(name):
            console.print(f"[bold]{escape(one.name)}[/] {escape(one.head)}", highlight=False, soft_wrap=True)
            for line in one.lines():
                console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("kind", "name", "what it is"):
        table.add_column(column, no_wrap=column != "what it is")
    kind = ""
    for one in every_name():
        if kind and one.kind != kind:
            table.add_section()
        kind = one.kind
        table.add_row(one.kind, escape(one.name), escape(one.summary))
    console.print(table)
    console.print("\n[dim]bench list NAME says more of one; settings are written name:key=value,key=value[/]")
