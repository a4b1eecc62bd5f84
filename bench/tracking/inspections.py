"""Inspections in MLflow: a run for each method that was looked at."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from bench.inspecting.looking import Inspection
from bench.inspecting.summary import figures
from bench.results.provenance import provenance
from bench.tracking.cells import Mirror

EXPERIMENT = "inspect"
INSPECTION_TAG = "augbench.inspection"


def write_runs(seen: Inspection, mirror: Mirror, paths: Sequence[Path]) -> None:
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
        client.log_dict(run, provenance().to_json(), "provenance.json")
        client.set_terminated(run, "FINISHED")
