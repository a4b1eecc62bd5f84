"""The files of an inspection: a figure, and the data of the table."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from torch_geometric.data import Data

from bench.inspecting.looking import OTHERS, Column, Inspection
from bench.inspecting.shapes import pooled
from bench.inspecting.summary import as_csv, counted
from tables.inspection_figure import Panel, Sketch, inspection_figure, save_picture

EXAMPLES = 6
POOLED = ("density", "degree", "clustering", "spectrum")


def write_files(seen: Inspection, folder: Path) -> tuple[Path, Path]:
    """The figure and the data of the table, named after what was inspected."""
    folder.mkdir(parents=True, exist_ok=True)
    name = file_name(seen)
    picture, numbers = folder / f"{name}.png", folder / f"{name}.csv"
    cell = seen.cell
    title = f"{cell.dataset}, {cell.k} labeled graphs per class, {counted(len(seen.trials), 'trial')}"
    save_picture(inspection_figure(title, [panel(column) for column in seen.columns]), picture)
    numbers.write_text(as_csv(seen), encoding="utf-8")
    return picture, numbers


def file_name(seen: Inspection) -> str:
    """A readable and unique file name: the same inspection overwrites only its own files."""
    first = seen.trials[0]
    facts = [seen.cell.dataset, seen.cell.k, *seen.cells, first.fold, first.repeat, len(seen.trials)]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:6]
    words = re.sub(r"[^A-Za-z0-9.+-]+", "-", f"{seen.cell.dataset}-k{seen.cell.k}-{'+'.join(seen.cells)}")
    return f"{words[:100].rstrip('-')}-{digest}"


def panel(column: Column) -> Panel:
    """A column as plain arrays for the figure; examples are spread over the sizes of the first trial's graphs."""
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
