"""`bench tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bench.cli import options
from bench.plan.identity import DEFAULT_ENGINE


def tune(
    grid: options.GridOption = None,
    dataset: options.DatasetOption = None,
    augmenter: options.AugmenterOption = None,
    k: options.LabelsOption = None,
    backbone: options.BackboneOption = None,
    readout: options.ReadoutOption = None,
    learner: options.LearnerOption = None,
    set_: options.SetOption = None,
    add: options.AddOption = None,
    trials: Annotated[
        int,
        typer.Option(
            "--trials",
            "-n",
            help="Trials per study, the default settings included. A method takes at most trials x folds x repeats "
            "trainings, with or without --pooled.",
        ),
    ] = 30,
    pooled: Annotated[
        bool,
        typer.Option(
            "--pooled",
            help="Run one study per method over all folds instead of one per fold. Settings are then chosen on test "
            "graphs, because one fold's validation graphs are another's test graphs; all output says so.",
        ),
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Start no new trial after this many seconds.")] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(
            help="Search space: lr=0.001..0.01, gdm-unc.encoder=gsae|vgsae, or a fixed value: gcn.layers=4. Repeatable."
        ),
    ] = None,
    validation: Annotated[
        str,
        typer.Option(
            help="budget (as many validation graphs per class as labels) or full (the fold's whole validation part)."
        ),
    ] = "budget",
    sampler: Annotated[str, typer.Option(help="Optuna sampler: tpe, gp or random.")] = "tpe",
    pruner: Annotated[
        str, typer.Option(help="Optuna pruner, applied after at least three trainings: median, wilcoxon or none.")
    ] = "median",
    seed: Annotated[int, typer.Option(help="Seed of the sampler.")] = 0,
    storage: Annotated[
        str | None, typer.Option(help="Any Optuna storage URL. Default: SQLite in the workspace.", show_default=False)
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Show the studies in the storage and exit.")] = False,
    by_fold: Annotated[
        bool, typer.Option("--by-fold", help="With --status: one row per fold, with its best settings.")
    ] = False,
    folds: options.FoldsOption = None,
    repeats: Annotated[int, typer.Option(help="Label draws per fold; a trial's value is the mean over them.")] = 1,
    preset: options.PresetOption = None,
    epochs: options.EpochsOption = None,
    features: options.FeaturesOption = None,
    splits: options.SplitsOption = None,
    metric: options.MetricOption = None,
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
    skip_unavailable: Annotated[
        bool, typer.Option("--skip-unavailable", help="Skip cells that cannot run here.")
    ] = False,
) -> None:
    """Search for good settings of every method of a grid, with the same number of trials each, plain training included.

    Each fold has a study of its own. A trial trains on k labeled graphs per class of the fold and is scored by accuracy
    on the fold's validation graphs; `bench run --tuned` then uses the best settings on that fold only. No setting is
    therefore chosen on a graph it is tested on. Repeat the command to resume.
    """
    if status or by_fold:
        show_status(workspace, storage, by_fold)
        return
    from bench.cli.tune_report import tune_and_report
    from bench.execution.request import RunRequest
    from bench.plan.asked import adjusted, changed, chosen_grid
    from bench.tuning.request import TuneRequest
    from bench.tuning.space import read_narrowing
    from bench.tuning.study import Search

    axes = options.axes(dataset, augmenter, k, (backbone, readout, learner))
    changes: dict[str, Any] = {
        "folds": folds,
        "repeats": repeats,
        "preset": preset,
        "features": features,
        "splits": splits,
        "metric": metric,
    }
    chosen = adjusted(changed(chosen_grid(grid, axes, data), set_ or [], options.specs(add or [])), changes, epochs)
    run = RunRequest(
        grid=chosen,
        workspace=workspace,
        data=data,
        tracking_uri=tracking_uri,
        jobs=jobs,
        memory=memory,
        trial_timeout=trial_timeout,
        executor=executor,
        scheduler=scheduler,
        device=device,
        engine=engine,
        skip_unavailable=skip_unavailable,
    )
    search = Search(trials, sampler, pruner, seed)
    narrowing = {**chosen.space, **read_narrowing(space or [])}
    raise typer.Exit(tune_and_report(TuneRequest(run, search, validation, storage, timeout, narrowing, pooled)))


def show_status(workspace: Path, storage: str | None, by_fold: bool) -> None:
    """The studies in a storage."""
    from bench.cli.progress import output
    from bench.cli.tuning_status import print_studies
    from bench.results.workspace import Workspace
    from bench.tuning.storage import existing_storage

    print_studies(existing_storage(storage, Workspace(workspace)), output(), by_fold)
