"""`bench run`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bench.cli import options
from bench.plan.identity import DEFAULT_ENGINE


def run(
    grid: options.GridOption = None,
    dataset: options.DatasetOption = None,
    augmenter: options.AugmenterOption = None,
    k: options.LabelsOption = None,
    backbone: options.BackboneOption = None,
    readout: options.ReadoutOption = None,
    learner: options.LearnerOption = None,
    set_: options.SetOption = None,
    add: options.AddOption = None,
    folds: options.FoldsOption = None,
    repeats: Annotated[int | None, typer.Option(help="Label draws per fold.")] = None,
    precision: Annotated[
        float | None,
        typer.Option(
            help="Go on adding label draws until every difference to plain training is known to this many points.",
            show_default=False,
        ),
    ] = None,
    max_repeats: Annotated[
        int | None,
        typer.Option(help="With --precision: the most label draws per fold. Default: 50.", show_default=False),
    ] = None,
    preset: options.PresetOption = None,
    epochs: options.EpochsOption = None,
    features: options.FeaturesOption = None,
    splits: options.SplitsOption = None,
    metric: options.MetricOption = None,
    jobs: options.JobsOption = None,
    memory: options.MemoryOption = None,
    executor: options.ExecutorOption = "local",
    scheduler: options.SchedulerOption = None,
    cluster: options.ClusterOption = None,
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
        bool, typer.Option("--tuned", help="Use the best settings found by bench tune, separately for each fold.")
    ] = False,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="With --tuned: use the settings of bench tune --pooled for all folds.")
    ] = False,
    storage: Annotated[
        str | None,
        typer.Option(help="With --tuned: the storage of the studies. Default: in the workspace.", show_default=False),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option("--shard", help="Run part I of N equal parts: I/N. Join the parts with bench merge."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would run, what cannot run, and how long it would take; run nothing."
        ),
    ] = False,
    probe: Annotated[
        bool, typer.Option(help="With --dry-run: time a few epochs of methods without recorded trials.")
    ] = True,
) -> None:
    """Run the missing trials of a grid, or of the given axes, and show a comparison table.

    Without --grid and --dataset, runs the grid `quick`. With --grid, the axes narrow the grid.
    """
    from bench.execution.precision import asked_precision
    from bench.execution.request import RunRequest
    from bench.plan.asked import adjusted, changed, chosen_grid

    axes = options.axes(dataset, augmenter, k, (backbone, readout, learner))
    chosen = changed(chosen_grid(grid, axes, data), set_ or [], options.specs(add or []))
    changes: dict[str, Any] = {
        "folds": folds,
        "repeats": repeats,
        "preset": preset,
        "features": features,
        "splits": splits,
        "metric": metric,
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
        shard=shard,
        cluster=options.comma_separated(cluster or []),
        precision=asked_precision(precision, max_repeats),
    )
    if dry_run:
        from bench.cli.dry_run import preview

        raise typer.Exit(preview(request, probe))
    from bench.cli.run_report import run_and_report

    raise typer.Exit(run_and_report(request))
