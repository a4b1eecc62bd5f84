"""`bench list`: what there is to choose from."""

from __future__ import annotations

from typing import Annotated

import typer


def grid_names() -> tuple[str, ...]:
    """Every grid that goes by a name."""
    from tables.own_specs import EVERY_NAME

    return ("quick", "augmenters", "full", *EVERY_NAME)


def grid_lines(name: str) -> list[str]:
    """What a grid holds: how many cells and trials, and the values of each of its axes."""
    from rich.markup import escape

    from bench.cli.words import counted
    from bench.plan.grids import AXES, named_grid

    grid = named_grid(name)
    size = counted(len(grid.cells), "cell")
    trials = counted(len(grid.cells) * grid.folds * grid.repeats, "trial")
    lines = [f"[bold]{name}[/] (grid): {size}, {trials} ({grid.folds} folds x {grid.repeats}, preset {grid.preset})"]
    for axis, part in AXES.items():
        values = dict.fromkeys(str(getattr(cell, part)) for cell in grid.cells)
        lines.append(f"  {axis:<12} {escape(', '.join(filter(None, values)))}")
    return lines


def list_plugins(
    name: Annotated[
        str | None, typer.Argument(help="One of the names: show its settings, or what a grid holds.")
    ] = None,
) -> None:
    """Learners, augmenters, backbones, readouts, datasets and grids; with a NAME, its settings or a grid's cells."""
    from rich.console import Console
    from rich.table import Table

    from augmenters import AUGMENTERS
    from bench.datasets import DATASETS
    from bench.learning import LEARNERS
    from bench.registry import show, unknown
    from models import BACKBONES, READOUTS
    from tables.own_specs import LEARNERS_BY_K, OWN_TABLES
    from tables.specs import NAMES

    console = Console()
    registries = {
        "learner": LEARNERS,
        "augmenter": AUGMENTERS,
        "backbone": BACKBONES,
        "readout": READOUTS,
        "dataset": DATASETS,
    }
    if name is None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("kind", "name", "what it is"):
            table.add_column(column)
        for kind, registry in registries.items():
            for entry in registry.entries().values():
                table.add_row(kind, entry.name, entry.summary)
            table.add_section()
        table.add_row("grid", "quick", "every method once over on built-in data")
        table.add_row("grid", "augmenters", "every method but the controls on the paper's datasets, k = 10, gcn")
        for grid in NAMES:
            table.add_row("grid", grid, "the cells of the paper's " + ("figure" if grid == "main_exp" else "table"))
        for grid in OWN_TABLES:
            table.add_row("grid", grid, "plain learners and networks beside the paper's best augmenter")
        table.add_row("grid", LEARNERS_BY_K.name, "learners, plain networks and GDM Acc over the label rates")
        table.add_row("grid", "full", "all of the paper's cells")
        console.print(table)
        console.print("\n[dim]bench list NAME shows the settings of one; write them as name:key=value,key=value[/]")
        return
    for kind, registry in registries.items():
        if name in registry.entries():
            entry = registry.entry(name)
            console.print(f"[bold]{name}[/] ({kind}, {entry.origin}): {entry.summary}", highlight=False)
            for setting in registry.settings(name).values():
                console.print(
                    f"  {setting.name:<12} {setting.domain}; default {show(setting.default)}", highlight=False
                )
            return
    if name in grid_names():
        for line in grid_lines(name):
            console.print(line, highlight=False, soft_wrap=True)
        return
    known = (n for registry in registries.values() for n in registry.entries())
    raise unknown("name", name, (*known, *grid_names()))
