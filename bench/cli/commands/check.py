"""`bench check` and `bench inspect`: whether a plug-in can be trusted, and what its graphs look like."""

from __future__ import annotations

from typing import Annotated

import typer

from bench.cli import completion
from bench.cli.options import DEFAULT_WORKSPACE, DataOption, TrackingOption, WorkspaceOption


def check_plugins(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...",
            help="name[:key=value,...], readout:name, learner:name or package.module:Class[:key=value,...]",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every augmenter, readout and learner that `bench list` shows.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that the checks of one plug-in may take.")] = 600,
) -> None:
    """Hold augmenters, readouts and learners to what they promise: untouched input, own randomness, odd graphs borne.

    Exit code 1 when something is broken.
    """
    from rich.console import Console

    from bench import api
    from bench.cli.check_report import print_report, print_summary
    from bench.registry import UserError

    if bool(names) == everything:
        raise UserError("bench check needs names of plug-ins, or --all for every one; `bench list` shows them")
    console, reports = Console(), []
    with console.status("checking") as status:
        for report in api.check(names or (), timeout):
            reports.append(report)
            status.update(f"checking; {report.name} is done")
            if not everything:
                print_report(report, console)
    if everything:
        print_summary(reports, console)
    raise typer.Exit(1 if any(report.broken for report in reports) else 0)


def inspect(
    dataset: Annotated[str, typer.Argument(help="Dataset whose graphs are augmented.")],
    augmenter: Annotated[
        list[str] | None,
        typer.Option(
            "--augmenter", "-a", help="name[:key=value,...]; may be repeated.", autocompletion=completion.augmenters
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Labelled graphs per class.")] = 10,
    fold: Annotated[int, typer.Option(help="The first trial's fold.")] = 0,
    repeat: Annotated[int, typer.Option(help="The first trial's repeat of the label draw.")] = 0,
    trials: Annotated[int, typer.Option(help="How many trials, over the folds from the first on.")] = 3,
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    data: DataOption = None,
    tracking_uri: TrackingOption = None,
) -> None:
    """Show what generated graphs look like beside the originals: a table, and a picture in WORKSPACE/inspect.

    The graphs are those that `bench run` would train on in the same trials, with GCN and mean readout.
    """
    import torch

    from bench.cli.inspect_report import inspect_and_report
    from bench.inspecting.request import InspectRequest

    torch.set_num_threads(1)
    inspect_and_report(InspectRequest(dataset, augmenter or [], k, fold, repeat, trials, workspace, data, tracking_uri))
