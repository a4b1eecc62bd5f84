"""What `bench inspect` does with its options: look, print, draw, keep."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from torch_geometric.data import Data

from bench.datasets.paths import data_root
from bench.inspecting.looking import OTHERS, Column, Inspection, chosen_trials, inspect_trials, resolve_cells
from bench.inspecting.shapes import pooled
from bench.inspecting.summary import as_csv, counted, figures, remarks, table
from bench.registry import UserError
from bench.results.provenance import provenance
from bench.results.workspace import Workspace
from bench.tracking.cells import Mirror
from tables.inspection_figure import Panel, Sketch, inspection_figure, save_picture

EXPERIMENT = "inspect"
INSPECTION_TAG = "augbench.inspection"
EXAMPLES = 6
POOLED = ("density", "degree", "clustering", "spectrum")


@dataclass(frozen=True)
class InspectRequest:
    """The options of `bench inspect`, typed."""

    dataset: str
    augmenters: Sequence[str]
    k: int = 10
    fold: int = 0
    repeat: int = 0
    trials: int = 3
    workspace: Path = Path("runs")
    data: Path | None = None
    tracking_uri: str | None = None


def execute(request: InspectRequest, console: Console | None = None) -> list[Path]:
    """Look at what the augmenters make; the files written."""
    console = console or Console()
    if not request.augmenters:
        raise UserError("bench inspect needs an augmenter; add -a NAME, for example -a gdm-rand")
    root, workspace = data_root(request.data), Workspace(request.workspace)
    trials = chosen_trials(request.fold, request.repeat, request.trials)
    cells = resolve_cells(request.dataset, request.augmenters, request.k, root)
    workspace.prepare()
    mirror = Mirror(request.tracking_uri or workspace.tracking_uri, workspace.artifacts)
    with console.status("looking") as status:
        seen = inspect_trials(
            cells, trials, root, lambda label, t: status.update(f"{label}, fold {t.fold}, repeat {t.repeat}")
        )
    paths = write_files(seen, workspace.root / "inspect")
    write_runs(seen, mirror, paths)
    console.print(table(seen))
    for line in remarks(seen):
        console.print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)
    console.print(f"picture: {paths[0]}   figures: {paths[1]}", highlight=False, soft_wrap=True)
    return paths


def write_files(seen: Inspection, folder: Path) -> list[Path]:
    """The picture and the table's figures, named after what was looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name(seen)
    picture, numbers = folder / f"{name}.png", folder / f"{name}.csv"
    cell = seen.cell
    title = f"{cell.dataset}, {cell.k} labelled graphs per class, {counted(len(seen.trials), 'trial')}"
    save_picture(inspection_figure(title, [panel(column) for column in seen.columns]), picture)
    numbers.write_text(as_csv(seen), encoding="utf-8")
    return [picture, numbers]


def file_name(seen: Inspection) -> str:
    """Readable where it can be, unique always: the same question overwrites its own answer alone."""
    first = seen.trials[0]
    facts = [seen.cell.dataset, seen.cell.k, *seen.cells, first.fold, first.repeat, len(seen.trials)]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:6]
    words = re.sub(r"[^A-Za-z0-9.+-]+", "-", f"{seen.cell.dataset}-k{seen.cell.k}-{'+'.join(seen.cells)}")
    return f"{words[:100].rstrip('-')}-{digest}"


def panel(column: Column) -> Panel:
    """A column as plain arrays for the picture; examples are spread over the sizes of the first trial's graphs."""
    order = sorted(range(len(column.examples)), key=lambda i: (column.examples[i].num_nodes or 0, i))
    count = 0 if column.label == OTHERS else min(EXAMPLES, len(order))
    chosen = [column.examples[order[(2 * i + 1) * len(order) // (2 * count)]] for i in range(count)]
    shapes = [shape for look in column.looks for shape in look.shapes]
    return Panel(
        label=column.label,
        sketches=[sketch(graph) for graph in chosen],
        samples={name: pooled(shapes, name) for name in POOLED},
    )


def sketch(graph: Data) -> Sketch:
    """A graph as plain arrays."""
    weight = graph.get("edge_weight")
    return Sketch(
        int(graph.num_nodes or 0), graph.edge_index.numpy().T, None if weight is None else weight.detach().numpy()
    )


def write_runs(seen: Inspection, mirror: Mirror, paths: list[Path]) -> None:
    """A run for each augmenter in the experiment `inspect`; looking again at the same replaces it."""
    from mlflow.entities import Metric, Param

    experiment = mirror.experiment(EXPERIMENT)
    client, now = mirror.client, int(time.time() * 1000)
    where = [f"{trial.fold}.{trial.repeat}" for trial in seen.trials]
    for column in seen.columns:
        if column.label not in seen.cells:
            continue
        cell = seen.cells[column.label]
        key = hashlib.sha256(json.dumps([cell.key, where]).encode()).hexdigest()[:16]
        for old in client.search_runs([experiment], filter_string=f"tags.`{INSPECTION_TAG}` = '{key}'"):
            client.delete_run(old.info.run_id)
        name = f"{cell.dataset} k={cell.k} {column.label}"
        run = client.create_run(experiment, run_name=name, tags={INSPECTION_TAG: key}).info.run_id
        metrics = {f"{figure}_original": pair[0] for figure, pair in figures(seen.columns[0]).items()}
        for figure, (mean, std) in figures(column).items():
            metrics |= {figure: mean, f"{figure}_std": std}
        params = {
            "dataset": cell.dataset,
            "k": cell.k,
            "augmenter": column.label,
            "features": cell.features,
            "splits": cell.splits,
            "trials": len(seen.trials),
            "first_fold": seen.trials[0].fold,
            "first_repeat": seen.trials[0].repeat,
            **{f"augmenter.{setting}": value for setting, value in cell.augmenter.settings.items()},
        }
        client.log_batch(
            run,
            metrics=[Metric(metric, value, now, 0) for metric, value in metrics.items()],
            params=[Param(param, str(value)) for param, value in params.items()],
        )
        for path in paths:
            client.log_artifact(run, str(path))
        client.log_dict(run, provenance(), "provenance.json")
        client.set_terminated(run, "FINISHED")
