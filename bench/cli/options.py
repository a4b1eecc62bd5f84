"""Options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bench.cli import completion

WorkspaceOption = Annotated[
    Path, typer.Option("--workspace", "-w", help="Folder of the ledger, the MLflow store and the tables.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Data root. Default: $BENCH_DATA, else your cache folder.")
]
TrackingOption = Annotated[
    str | None, typer.Option("--tracking-uri", help="An MLflow server or store. Default: SQLite in the workspace.")
]
GridOption = Annotated[
    str | None,
    typer.Option(
        "--grid", "-g", help="quick, augmenters, full, a table's name, or a TOML file.", autocompletion=completion.grids
    ),
]
DatasetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset", "-d", help="Datasets: PROTEINS,mine; may be repeated.", autocompletion=completion.datasets
    ),
]
AugmenterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--augmenter",
        "-a",
        help="name[:key=value,...], several with commas; may be repeated.",
        autocompletion=completion.augmenters,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of any part: training.lr=0.001, backbone.layers=2, augmenter.p=0.1|0.4 for several values.",
    ),
]
AddOption = Annotated[
    list[str] | None, typer.Option("--add", help="A method (or learner) beside those of the grid; may be repeated.")
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", help="What something is called in tables: hidenodes=Hide.")
]
LabelsOption = Annotated[list[str] | None, typer.Option("-k", help="Labelled graphs per class: 2,5,10.")]
BackboneOption = Annotated[
    list[str] | None, typer.Option("--backbone", "-b", help="gcn, gat, gin, sage.", autocompletion=completion.backbones)
]
ReadoutOption = Annotated[
    list[str] | None,
    typer.Option("--readout", "-r", help="mean, add, max, diffpool, ...", autocompletion=completion.readouts),
]
LearnerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        "--model",
        "-m",
        help="gnn, wl, statistics, ...; may be repeated, or wl,size.",
        autocompletion=completion.learners,
    ),
]
FoldsOption = Annotated[int | None, typer.Option("--folds", help="The first N of the ten folds.")]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset", help="paper (ReLU on the logits), standard (linear logits), quick. Default: paper for its grids."
    ),
]
EpochsOption = Annotated[int | None, typer.Option("--epochs", help="Optimiser steps, instead of the preset's.")]
FeaturesOption = Annotated[str | None, typer.Option("--features", help="native, constant, degree-onehot, degree.")]
SplitsOption = Annotated[
    str | None,
    typer.Option("--splits", help="Split family, stratified for our own ten folds, holdout, or a splitter's name."),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="What results are judged by: accuracy, roc_auc, average_precision, ... Default: the dataset's.",
        show_default=False,
    ),
]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help="Worker processes. Default: one per core.")]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="What all workers may take together: 4GiB. Default: 80 % of what is free.",
        show_default=False,
    ),
]
ExecutorOption = Annotated[
    str,
    typer.Option(
        "--executor",
        help="local: worker processes; dask: a cluster; slurm: jobs of one; serial: this process, for a debugger.",
    ),
]
ClusterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        help="With --executor slurm: partition=NAME,walltime=08:00:00,memory=2GB,processes=4, or any of sbatch's own.",
        show_default=False,
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Address of a Dask scheduler. Default: a local cluster.", show_default=False),
]
TrialTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--trial-timeout",
        help="Seconds after which a trial is ended and counts as failed. Default: no limit.",
        show_default=False,
    ),
]
DeviceOption = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, mps.")]
EngineOption = Annotated[str, typer.Option("--engine", help="fast, or reference (plain PyG).")]
DEFAULT_WORKSPACE = Path("runs")


def comma_separated(texts: list[str]) -> list[str]:
    """Items from repeated or comma-separated options."""
    return [piece.strip() for text in texts for piece in text.split(",")]


def specs(texts: list[str]) -> list[str]:
    """Plug-ins from repeated or comma-separated options: `-m wl:h=3,c=10,size` is `wl:h=3,c=10` and `size`."""
    found: list[str] = []
    for text in texts:
        for place, piece in enumerate(text.split(",")):
            if place and "=" in piece.partition(":")[0]:  # one more setting of the plug-in before it
                found[-1] += f",{piece}"
            else:
                found.append(piece.strip())
    return found


def axes(
    dataset: list[str] | None,
    augmenter: list[str] | None,
    k: list[str] | None,
    models: tuple[list[str] | None, list[str] | None, list[str] | None],
) -> dict[str, list[Any]]:
    """The axes of a grid from what was written; `models` are backbones, readouts and learners."""
    backbone, readout, learner = models
    return {
        "datasets": specs(dataset or []),
        "augmenters": specs(augmenter or []),
        "k": whole_numbers(k or [], "-k"),
        "backbones": specs(backbone or []),
        "readouts": specs(readout or []),
        "learners": specs(learner or []),
    }


def whole_numbers(texts: list[str], option: str) -> list[int]:
    """Numbers from repeated or comma-separated options: `-k 2 -k 5` or `-k 2,5`."""
    from bench.registry import UserError

    parts = [part.strip() for text in texts for part in text.split(",")]
    try:
        return [int(part) for part in parts]
    except ValueError:
        raise UserError(f"{option} {','.join(texts)} is not a list of whole numbers; write {option} 2,5,10") from None
