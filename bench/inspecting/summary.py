"""From measurements to a table: in words, as CSV, and as metrics for MLflow."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable

import numpy as np

from bench.inspecting.looking import Column, Inspection, Look
from bench.inspecting.shapes import MOST_GRAPHS, MOST_NODES
from bench.tracking.inspections import InspectedMethod

Figure = Callable[[Look], float | None]


def _mean(name: str) -> Figure:
    """Mean over the nodes of each graph, then over graphs."""
    return lambda look: float(np.mean([np.mean(getattr(shape, name)) for shape in look.shapes]))


def _weight(look: Look) -> float | None:
    weights = [shape.weight for shape in look.shapes if shape.weight is not None]
    return float(np.mean(weights)) if weights else None


def _fell_back(look: Look) -> float | None:
    return None if look.seconds is None else float(any(name.startswith("fallback") for name in look.notes))


# The rows of the table: key, label, value of one trial.
FIGURES: tuple[tuple[str, str, Figure], ...] = (
    ("graphs", "graphs in a trial", lambda look: float(look.count)),
    ("nodes", "nodes", _mean("nodes")),
    ("density", "density", _mean("density")),
    ("degree", "degree", _mean("degree")),
    ("clustering", "clustering", _mean("clustering")),
    ("edge_weight", "edge weight", _weight),
    ("label_entropy", "label entropy (bits)", lambda look: look.entropy),
    ("degree_distance", "distance: degree", lambda look: look.distance.get("degree")),
    ("clustering_distance", "distance: clustering", lambda look: look.distance.get("clustering")),
    ("spectrum_distance", "distance: spectrum", lambda look: look.distance.get("spectrum")),
    ("feature_distance", "distance: features", lambda look: look.distance.get("features")),
    ("new_feature_rows", "new feature rows", lambda look: look.distance.get("new_rows")),
    ("fallback_share", "trials with a fallback", _fell_back),
    ("seconds_per_graph", "seconds per graph", lambda look: look.seconds),
)


def figures(column: Column) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation over the trials of every statistic that the column has."""
    found = {}
    for key, _, figure in FIGURES:
        values = [value for look in column.looks if (value := figure(look)) is not None]
        if values:
            found[key] = float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return found


def shown(key: str, value: float) -> str:
    """A value as the table shows it."""
    if key in ("fallback_share", "new_feature_rows"):
        return f"{100 * value:.0f} %"
    return f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def rows(seen: Inspection) -> list[list[str]]:
    """The table: a label, then a value per method; the originals and another draw of them come first, for reference."""
    found = [figures(column) for column in seen.columns]
    return [
        [words, *(shown(key, values[key][0]) if key in values else "" for values in found)]
        for key, words, _ in FIGURES
        if any(key in values for values in found)
    ]


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def remarks(seen: Inspection) -> list[str]:
    """Notes on how to read the table."""
    cell = seen.cell
    lines = [
        f"{cell.dataset}, k={cell.k}, features {cell.features}, splits {cell.splits}; mean over "
        f"{counted(len(seen.trials), 'trial')}, spread in the file; distances: Wasserstein-1 to the labeled graphs of "
        f"the same trial, every graph counting the same"
    ]
    shapes = [shape for column in seen.columns for look in column.looks for shape in look.shapes]
    pieced = sum(shape.pieced for shape in shapes)
    if pieced:
        lines.append(
            f"clustering and spectrum of {pieced} graphs with more than {MOST_NODES} nodes are those of a piece of "
            f"{MOST_NODES} nodes, grown from a random one"
        )
    if any(look.count > len(look.shapes) for column in seen.columns for look in column.looks):
        lines.append(f"of each trial a random {MOST_GRAPHS} graphs were measured")
    for column in seen.columns:
        names = sorted({name for look in column.looks for name in look.notes})
        for name in names:
            hit = sum(name in look.notes for look in column.looks)
            lines.append(f"{column.label}: {name} in {hit} of {len(column.looks)} trials")
    return lines


def as_csv(seen: Inspection) -> str:
    """One line per method, with means and standard deviations as columns."""
    out = io.StringIO()
    names = [f"{key}{end}" for key, _, _ in FIGURES for end in ("", "_std")]
    writer = csv.DictWriter(out, ["dataset", "k", "trials", "graphs_of", *names], restval="")
    writer.writeheader()
    for column in seen.columns:
        values = {
            name: f"{value:.6g}"
            for key, pair in figures(column).items()
            for name, value in zip((key, f"{key}_std"), pair, strict=True)
        }
        where = {"dataset": seen.cell.dataset, "k": seen.cell.k, "trials": len(seen.trials), "graphs_of": column.label}
        writer.writerow({**where, **values})
    return out.getvalue()


def for_tracking(seen: Inspection) -> list[InspectedMethod]:
    """Each inspected method, with its statistics and those of the originals."""
    where = [f"{trial.fold}.{trial.repeat}" for trial in seen.trials]
    originals = {f"{figure}_original": pair[0] for figure, pair in figures(seen.columns[0]).items()}
    methods = []
    for column in seen.columns:
        if column.label not in seen.cells:
            continue
        cell = seen.cells[column.label]
        metrics = dict(originals)
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
        key = hashlib.sha256(json.dumps([cell.key, where]).encode()).hexdigest()[:16]
        methods.append(InspectedMethod(key, f"{cell.dataset} k={cell.k} {column.label}", params, metrics))
    return methods
