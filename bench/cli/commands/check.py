"""`bench check` and `bench inspect`: whether a plug-in keeps its contract, and what its graphs look like."""

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
        bool, typer.Option("--all", help="Check every augmenter, readout and learner that `bench list` shows.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit for the checks of one plug-in, in seconds.")] = 600,
) -> None:
    """Check that augmenters, readouts and learners keep their contract.

    Among others: the input is not modified, all randomness comes from the given generator, and unusual graphs (empty,
    isolated nodes, self-loops) cause no error. Exits with code 1 if a check fails.
    """
    from rich.console import Console

    from bench import api
    from bench.cli.check_report import print_report, print_summary
    from bench.registry import UserError

    if bool(names) == everything:
        raise UserError("bench check needs the names of plug-ins, or --all; `bench list` shows the names")
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
    dataset: Annotated[str, typer.Argument(help="Dataset to augment.")],
    augmenter: Annotated[
        list[str] | None,
        typer.Option(
            "--augmenter",
            "-a",
            help="Augmenter as name[:key=value,...]. Repeatable.",
            autocompletion=completion.augmenters,
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Labeled graphs per class.")] = 10,
    fold: Annotated[int, typer.Option(help="Fold of the first trial.")] = 0,
    repeat: Annotated[int, typer.Option(help="Label draw of the first trial.")] = 0,
    trials: Annotated[int, typer.Option(help="Number of trials, one per fold, starting at --fold.")] = 3,
    workspace: WorkspaceOption = DEFAULT_WORKSPACE,
    data: DataOption = None,
    tracking_uri: TrackingOption = None,
) -> None:
    """Compare generated graphs with the originals: a table, and a figure in WORKSPACE/inspect.

    The graphs are those that `bench run` would train on in the same trials, with GCN and mean readout.
    """
    import torch

    from bench.cli.inspect_report import inspect_and_report
    from bench.inspecting.request import InspectRequest

    torch.set_num_threads(1)
    inspect_and_report(InspectRequest(dataset, augmenter or [], k, fold, repeat, trials, workspace, data, tracking_uri))
