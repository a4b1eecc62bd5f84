"""The initial view of MLflow's pages: the runs of an experiment as trainings, with accuracy first.

MLflow stores a shared view as a tag of the experiment, and opens it for a URL that contains the tag's key.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from bench.plan.cells import Cell
from bench.results.workspace import Workspace
from bench.tracking.glance import read_only

KIND_TAG = "mlflow.experimentKind"
SHARED = "augbench"  # the key of our view
_FIGURES = ("accuracy", "accuracy_std", "balanced_accuracy", "trials_done")
_AXES = ("dataset", "k", "augmenter", "backbone", "readout", "learner", "training.preset")


def experiment_tags() -> dict[str, str]:
    """The tags of all our experiments: their kind, primary metric, and table columns."""
    columns = [*(f"metrics.`{name}`" for name in _FIGURES), *(f"params.`{name}`" for name in _AXES)]
    shared = {
        "selectedColumns": columns,
        "columnOrder": [],
        "columnWidths": {},
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsVisibilityMap": {},
        "runsHiddenMode": "FIRST_20_RUNS",
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "searchFilter": "",
        "orderByKey": "attributes.start_time",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "modelVersionFilter": "All Runs",
        "datasetsFilter": [],
    }
    return {
        KIND_TAG: "custom_model_development",
        "mlflow.experiment.primaryMetric.name": _FIGURES[0],
        f"mlflow.sharedViewState.{SHARED}": json.dumps(shared),
    }


def page(home: Workspace, grid: str | None) -> str:
    """The part of a URL that leads to the runs of a grid, or to the list of experiments."""
    number = None if grid is None else _experiment(home, grid)
    if number is None:
        return "/#/experiments?workflowType=machine_learning"
    return f"/#/experiments/{number}/runs?workflowType=machine_learning&viewStateShareKey={SHARED}"


def _experiment(home: Workspace, grid: str) -> str | None:
    try:
        with closing(read_only(home.tracking_uri)) as database:
            row = database.execute("SELECT experiment_id FROM experiments WHERE name = ?", (grid,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])


def run_name(cell: Cell) -> str:
    """A short name: the method, the model if it is not the usual one, and the dataset; parameters have the rest."""
    usual = (cell.part_label("backbone"), cell.part_label("readout")) == ("gcn", "mean")
    model = cell.learner.label if cell.backbone is None else f"{cell.backbone.label} {cell.part_label('readout')}"
    method = cell.augmenter.label + (" tuned" if cell.tuned else "")
    return " ".join(filter(None, (method, "" if usual else model, cell.dataset, f"k={cell.k}")))
