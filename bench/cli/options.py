"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bench.cli import completion

WorkspaceOption = Annotated[
    Path, typer.Option("--workspace", "-w", help="Folder that holds the ledger, the MLflow store and the tables.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Data root. Default: $BENCH_DATA or your cache folder.")
]
TrackingOption = Annotated[
    str | None, typer.Option("--tracking-uri", help="MLflow server or store. Default: SQLite in the workspace.")
]
GridOption = Annotated[
    str | None,
    typer.Option(
        "--grid",
        "-g",
        help="quick, augmenters, full, the name of a table, or a TOML file.",
        autocompletion=completion.grids,
    ),
]
DatasetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset",
        "-d",
        help="Datasets, comma-separated: PROTEINS,mine. Repeatable.",
        autocompletion=completion.datasets,
    ),
]
AugmenterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--augmenter",
        "-a",
        help="Augmenters as name[:key=value,...], comma-separated. Repeatable.",
        autocompletion=completion.augmenters,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Set part.setting=value: training.lr=0.001, backbone.layers=2; several values: augmenter.p=0.1|0.4.",
    ),
]
AddOption = Annotated[
    list[str] | None, typer.Option("--add", help="Add a method or learner to those of the grid. Repeatable.")
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", help="Display name in tables: hidenodes=Hide. Repeatable.")
]
LabelsOption = Annotated[list[str] | None, typer.Option("-k", help="Labeled graphs per class: 2,5,10.")]
BackboneOption = Annotated[
    list[str] | None,
    typer.Option("--backbone", "-b", help="Backbones: gcn, gat, gin, sage.", autocompletion=completion.backbones),
]
ReadoutOption = Annotated[
    list[str] | None,
    typer.Option("--readout", "-r", help="Readouts: mean, add, max, diffpool, ...", autocompletion=completion.readouts),
]
LearnerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--learner",
        "--model",
        "-m",
        help="Learners, comma-separated: gnn, wl, statistics, ... Repeatable.",
        autocompletion=completion.learners,
    ),
]
FoldsOption = Annotated[int | None, typer.Option("--folds", help="Run only the first N folds.")]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="paper (ReLU on the logits), standard (linear logits) or quick. Default: paper for the paper's grids.",
    ),
]
EpochsOption = Annotated[int | None, typer.Option("--epochs", help="Optimizer steps, overriding the preset.")]
FeaturesOption = Annotated[
    str | None, typer.Option("--features", help="Node features: native, constant, degree-onehot or degree.")
]
SplitsOption = Annotated[
    str | None,
    typer.Option(
        "--splits", help="Split family, stratified (ten folds made here), holdout, or the name of a splitter."
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        help="Primary metric: accuracy, roc_auc, average_precision, ... Default: that of the dataset.",
        show_default=False,
    ),
]
JobsOption = Annotated[int | None, typer.Option("--jobs", "-j", help="Worker processes. Default: one per core.")]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        "--memory",
        help="Memory limit for all workers together, such as 4GiB. Default: 80 % of the free memory.",
        show_default=False,
    ),
]
ExecutorOption = Annotated[
    str,
    typer.Option(
        "--executor",
        help="local (worker processes), dask (a cluster), slurm (batch jobs) or serial (this process, for debugging).",
    ),
]
ClusterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        help="With --executor slurm: partition=NAME,walltime=08:00:00,memory=2GB,processes=4, or any sbatch option.",
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
        help="Stop a trial after this many seconds and count it as failed. Default: no limit.",
        show_default=False,
    ),
]
DeviceOption = Annotated[str, typer.Option("--device", help="Device: cpu, cuda, cuda:1 or mps.")]
EngineOption = Annotated[str, typer.Option("--engine", help="Training engine: fast or reference (plain PyG).")]
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
    """The axes of a grid from the options; `models` are backbones, readouts and learners."""
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
