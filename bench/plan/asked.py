"""The grid that a user asks for: a named one, optionally narrowed, or a product of axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.plan.changes import Changes, changed_grid, read_settings
from bench.plan.grids import AXES, Grid, has_network, named_grid, narrowed, product
from bench.registry import UserError


def chosen_grid(name: str | None, axes: dict[str, list[Any]], data: Path | None = None) -> Grid:
    """The named grid, narrowed to the axes, or the product of the axes."""
    if name is None and axes["datasets"]:
        given = {axis: values for axis, values in axes.items() if values}
        _refuse_idle_axes(given)
        return Grid("custom", product(**given))
    if name is None and any(axes.values()):
        raise UserError("these axes need a dataset; add -d NAME, or narrow a grid with --grid")
    return narrowed(named_grid(name or "quick", data), axes)


def changed(grid: Grid, settings: Sequence[str], added: Sequence[str]) -> Grid:
    """The grid with changed settings (`backbone.layers=2`) and added methods."""
    if not settings and not added:
        return grid
    return changed_grid(grid, Changes(read_settings(settings), tuple(added)))


def _refuse_idle_axes(axes: dict[str, list[Any]]) -> None:
    """Reject a backbone or readout for learners that have none, since it would have no effect."""
    learners = axes.get("learners", [])
    idle = next((axis for axis in ("backbones", "readouts") if axis in axes), None)
    if learners and idle and not any(map(has_network, learners)):
        raise UserError(
            f"{', '.join(learners)} has no {AXES[idle]}, so {', '.join(axes[idle])} would change nothing; "
            f"leave out --{AXES[idle]}, or add -m gnn"
        )


def adjusted(grid: Grid, changes: dict[str, Any], epochs: int | None) -> Grid:
    """The grid with folds, repeats, training, features and other options replaced."""
    given = {key: value for key, value in changes.items() if value is not None}
    if epochs is not None:
        given["training"] = {**grid.training, "epochs": epochs}
    return replace(grid, **given)
