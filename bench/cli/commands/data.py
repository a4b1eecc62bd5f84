"""`bench data`: list the datasets at hand and add others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bench.registry import UserError

if TYPE_CHECKING:
    from bench.datasets.importing import Brought

app = typer.Typer(help="List, download and import datasets and splits.", no_args_is_help=True)

DataOption = Annotated[
    Path | None,
    # The variable from `bench.datasets.paths`; importing that package would load numpy and slow down `bench --help`.
    typer.Option("--data", envvar="BENCH_DATA", help="Data root.", show_default="the user's cache folder"),
]


@app.command()
def status(data: DataOption = None) -> None:
    """Show which datasets and splits are in the data root."""
    from rich.console import Console
    from rich.table import Table

    from bench.datasets import cheap_info
    from bench.datasets.catalogue import PAPER_SETS
    from bench.datasets.loading import present_tu_sets
    from bench.datasets.paths import data_root
    from bench.datasets.split_files import PUBLISHED, families_at_hand
    from bench.datasets.stored import stored_names

    root = data_root(data)
    table = Table("dataset", "state", "graphs", "classes", "node features", "splits", box=None, pad_edge=False)
    missing = []
    others = sorted((present_tu_sets(root) | stored_names(root)) - set(PAPER_SETS))
    for name in [*PAPER_SETS, *others, "digits", "synthetic"]:
        info = cheap_info(name, root)
        families = families_at_hand(name, root)
        lacking = not info.present or not set(PUBLISHED.get(name, ())) <= set(families)
        if lacking:
            missing.append(name)
        state = "built in" if name in ("digits", "synthetic") else "there" if info.present else "missing"
        features = {True: "yes", False: "no", None: "?"}[info.has_features]
        counts = ["" if n is None else str(n) for n in (info.graphs, info.classes)]
        table.add_row(name, state, *counts, features, ", ".join([*families, "stratified"]))
    console = Console()
    console.print(f"data root: {root}", soft_wrap=True, highlight=False)
    console.print(table)
    if missing:
        console.print(
            f"To get what is missing: bench data fetch {' '.join(missing)}, or bench data import PATH.",
            soft_wrap=True,
            highlight=False,
        )


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Datasets. Default: the six of the paper.")] = None,
    data: DataOption = None,
    tu_url: Annotated[
        str | None,
        typer.Option(envvar="BENCH_TU_URL", help="URL of the folder that contains NAME.zip.", show_default="as in PyG"),
    ] = None,
    splits_url: Annotated[
        str | None,
        typer.Option(
            envvar="BENCH_SPLITS_URL",
            help="URL of the folder that contains FAMILY/NAME_splits.json.",
            show_default="the authors'",
        ),
    ] = None,
) -> None:
    """Download and verify TU datasets and the published splits of Errica et al."""
    from bench.datasets import resolve_dataset
    from bench.datasets.catalogue import PAPER_SETS
    from bench.datasets.fetching import fetch as fetch_dataset
    from bench.datasets.paths import data_root

    root = data_root(data)
    for label in [resolve_dataset(name, root).label for name in names or PAPER_SETS]:
        for brought in fetch_dataset(label, root, tu_url, splits_url):
            _tell(brought)


@app.command(name="import")
def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Archives, folders in TU layout, graph files (.pt), split files, or folders that contain them."
        ),
    ],
    data: DataOption = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset in a .pt file.", show_default="the file's name")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Primary metric of the dataset: roc_auc, ...", show_default="accuracy")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Name of the split family.", show_default="the split file's folder")
    ] = None,
) -> None:
    """Import datasets (NAME.zip, folders, a list of graphs in a .pt file) and split files (NAME_splits.json)."""
    from bench.datasets.graph_files import SUFFIXES, import_graphs
    from bench.datasets.importing import find_items, import_path
    from bench.datasets.paths import data_root

    root = data_root(data)
    items = [item for path in paths for item in find_items(path.expanduser())]
    items.sort(key=lambda item: item.name.endswith("_splits.json"))
    graphs = [item for item in items if item.suffix.lower() in SUFFIXES]
    if (name or metric) and len(graphs) != 1:
        raise UserError(f"--name and --metric apply to a single .pt file of graphs, and {len(graphs)} were given")
    if metric:
        from bench.protocol.registries import METRICS

        metric = METRICS.resolve(metric).label
    failures: list[UserError] = []
    for item in items:
        try:
            _tell(import_graphs(item, root, name, metric) if item in graphs else import_path(item, root, family))
        except UserError as error:
            if len(items) == 1:
                raise
            failures.append(error)
            typer.echo(f"failed     {item}: {error}", err=True)
    if failures:
        raise UserError(f"{len(failures)} of {len(items)} could not be imported; the first error: {failures[0]}")


def _tell(brought: Brought) -> None:
    typer.echo(f"{brought.outcome:<10} {brought.what}: {brought.detail}")
