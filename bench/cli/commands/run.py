"""`bench run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.cli import options
from bench.plan.identity import DEFAULT_ENGINE

if TYPE_CHECKING:
    from pathlib import Path

    from bench.plan.grids import Grid


def run(
    grid: options.GridOption = None,
    dataset: options.DatasetOption = None,
    augmenter: Annotated[
        list[str] | None, typer.Option("--augmenter", "-a", help="name[:key=value,...]; may be repeated.")
    ] = None,
    k: options.LabelsOption = None,
    backbone: options.BackboneOption = None,
    readout: options.ReadoutOption = None,
    learner: options.LearnerOption = None,
    folds: options.FoldsOption = None,
    repeats: Annotated[int | None, typer.Option(help="Label draws per fold.")] = None,
    preset: options.PresetOption = None,
    epochs: options.EpochsOption = None,
    features: options.FeaturesOption = None,
    splits: options.SplitsOption = None,
    jobs: options.JobsOption = None,
    memory: options.MemoryOption = None,
    executor: options.ExecutorOption = "local",
    scheduler: options.SchedulerOption = None,
    trial_timeout: options.TrialTimeoutOption = None,
    workspace: options.WorkspaceOption = options.DEFAULT_WORKSPACE,
    data: options.DataOption = None,
    tracking_uri: options.TrackingOption = None,
    device: options.DeviceOption = "cpu",
    engine: options.EngineOption = DEFAULT_ENGINE,
    retry: Annotated[bool, typer.Option(help="Run failed trials again.")] = True,
    skip_unavailable: Annotated[
        bool, typer.Option("--skip-unavailable", help="Go on without what cannot run here; every table says so.")
    ] = False,
    tuned: Annotated[
        bool, typer.Option("--tuned", help="With the settings that bench tune found best, each fold with its own.")
    ] = False,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="With --tuned: one setting for all folds, of bench tune --pooled.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(help="With --tuned: where the studies are. Default: in the workspace.", show_default=False),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would run, what cannot, and how long it would take.")
    ] = False,
    probe: Annotated[bool, typer.Option(help="With --dry-run: time a few epochs of what was never measured.")] = True,
) -> None:
    """Run what is missing of a grid, or of the axes given; ends with a comparison table.

    Without --grid and --dataset it is the grid `quick`. Beside --grid, the axes narrow it.
    """
    from bench.execution.request import RunRequest

    axes: dict[str, list[Any]] = {
        "datasets": dataset or [],
        "augmenters": augmenter or [],
        "k": options.whole_numbers(k or [], "-k"),
        "backbones": backbone or [],
        "readouts": readout or [],
        "learners": options.specs(learner or []),
    }
    chosen = chosen_grid(grid, axes, data)
    changes: dict[str, Any] = {
        "folds": folds,
        "repeats": repeats,
        "preset": preset,
        "features": features,
        "splits": splits,
    }
    request = RunRequest(
        grid=adjusted(chosen, changes, epochs),
        workspace=workspace,
        data=data,
        tracking_uri=tracking_uri,
        jobs=jobs,
        executor=executor,
        scheduler=scheduler,
        device=device,
        engine=engine,
        retry=retry,
        skip_unavailable=skip_unavailable,
        tuned=tuned,
        storage=storage,
        memory=memory,
        pooled=pooled,
        trial_timeout=trial_timeout,
    )
    if dry_run:
        from bench.cli.dry_run import preview

        raise typer.Exit(preview(request, probe))
    from bench.cli.run_report import run_and_report

    raise typer.Exit(run_and_report(request))


def chosen_grid(name: str | None, axes: dict[str, list[Any]], data: Path | None = None) -> Grid:
    """The grid of that name, narrowed; or the product of the axes."""
    from bench.plan.grids import Grid, named_grid, narrowed, product
    from bench.registry import UserError

    if name is None and axes["datasets"]:
        given = {axis: values for axis, values in axes.items() if values}
        _refuse_idle_axes(given)
        return Grid("custom", product(**given))
    if name is None and any(axes.values()):
        raise UserError("these axes need a dataset; add -d NAME, or --grid to narrow one")
    return narrowed(named_grid(name or "quick", data), axes)


def _refuse_idle_axes(axes: dict[str, list[Any]]) -> None:
    """A backbone beside learners that have none would change nothing in silence."""
    from bench.plan.grids import AXES, has_network
    from bench.registry import UserError

    learners = axes.get("learners", [])
    idle = next((axis for axis in ("backbones", "readouts") if axis in axes), None)
    if learners and idle and not any(map(has_network, learners)):
        raise UserError(
            f"{', '.join(learners)} has no {AXES[idle]}, so {', '.join(axes[idle])} would change nothing; "
            f"leave out --{AXES[idle]}, or add -m gnn"
        )


def adjusted(grid: Grid, changes: dict[str, Any], epochs: int | None) -> Grid:
    """The grid with what the command line says otherwise."""
    from dataclasses import replace

    given = {key: value for key, value in changes.items() if value is not None}
    if epochs is not None:
        given["training"] = {**grid.training, "epochs": epochs}
    return replace(grid, **given)
