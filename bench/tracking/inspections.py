"""Inspections in MLflow: one run per method."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.results.provenance import provenance
from bench.tracking.cells import Mirror

EXPERIMENT = "inspect"
INSPECTION_TAG = "augbench.inspection"


@dataclass(frozen=True)
class InspectedMethod:
    """The results of inspecting one method; `key` identifies the inspection."""

    key: str
    name: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]


def write_runs(methods: Sequence[InspectedMethod], mirror: Mirror, paths: Sequence[Path]) -> None:
    """Write one run per method to the experiment `inspect`, with the files; a repeated inspection replaces its own."""
    from mlflow.entities import Metric, Param

    experiment = mirror.experiment(EXPERIMENT)
    client, now = mirror.client, int(time.time() * 1000)
    for method in methods:
        for old in client.search_runs([experiment], filter_string=f"tags.`{INSPECTION_TAG}` = '{method.key}'"):
            client.delete_run(old.info.run_id)
        run = client.create_run(experiment, run_name=method.name, tags={INSPECTION_TAG: method.key}).info.run_id
        client.log_batch(
            run,
            metrics=[Metric(name, value, now, 0) for name, value in method.metrics.items()],
            params=[Param(name, str(value)) for name, value in method.params.items()],
        )
        for path in paths:
            client.log_artifact(run, str(path))
        client.log_dict(run, provenance().to_json(), "provenance.json")
        client.set_terminated(run, "FINISHED")
