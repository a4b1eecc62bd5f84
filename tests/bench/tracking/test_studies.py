"""Studies in MLflow: a run per method, its folds or its pooled trials below it, completed after a store was away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from mlflow import MlflowClient

from bench.plan.cells import TUNED_ON
from bench.results.workspace import Workspace
from bench.tuning.storage import Storage
from bench.tuning.summary import methods_of, studies_in

Make = Callable[..., Path]


def test_folds_are_child_runs_of_their_method_in_mlflow(workspace: Make, tuning: ModuleType) -> None:
    folder, grid = workspace(), tuning.grid(("none",))
    client = MlflowClient(Workspace(folder).tracking_uri)
    for trials in (3, 5):
        assert tuning.tune(grid, folder, trials, sampler="random")[0] == 0
    runs = client.search_runs([client.get_experiment_by_name("small-tuning").experiment_id])
    [parent] = [run for run in runs if "augbench.study" in run.data.tags]
    folds = {run.data.params["fold"]: run for run in runs if "mlflow.parentRunId" in run.data.tags}
    assert len(runs) == 4 and set(folds) == {"0", "1", "2"}, "three folds, whatever the number of trials"
    [method] = methods_of(studies_in(Storage(tuning.url(folder))))
    for study in method.studies:
        history = client.get_metric_history(folds[str(study.fold)].info.run_id, "validation_accuracy")
        stored = {trial.turn: trial.value for trial in study.trials}
        assert sorted((point.step, point.value) for point in history) == sorted(stored.items()), "each once"
        assert json.loads(folds[str(study.fold)].data.tags["best"]) == study.best.settings
    assert parent.data.metrics["best_validation_accuracy"] == pytest.approx(method.best)
    assert parent.data.tags["settings"] == TUNED_ON["nested"] and "fold" not in parent.data.params
    assert set(json.loads(parent.data.tags["best"])) == {"0", "1", "2"}
    artifacts = {item.path for item in client.list_artifacts(parent.info.run_id)}
    assert {"history.png", "study.json", "trials.csv"} <= artifacts


def test_trials_are_child_runs_of_their_pooled_study_in_mlflow(workspace: Make, tuning: ModuleType) -> None:
    folder, grid = workspace(), tuning.grid(("none",))
    home = Workspace(folder)
    client = MlflowClient(home.tracking_uri)
    assert tuning.tune(grid, folder, 3, sampler="random", pruner="none", pooled=True)[0] == 0
    assert tuning.tune(grid, folder, 5, sampler="random", pruner="none", pooled=True)[0] == 0
    experiment = client.get_experiment_by_name("small-tuning")
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "augbench.study" in run.data.tags]
    children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
    assert len(parents) == 1 and len(children) == 5
    parent = parents[0]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    stored = {str(trial.number): trial for trial in studies_in(Storage(tuning.url(folder)))[0].trials}
    for run in children:
        trial = stored[run.data.tags["augbench.trial"]]
        assert run.data.metrics["validation_accuracy"] == trial.value
        assert run.data.params["backbone.width"] == str(trial.settings["backbone.width"])
        history = client.get_metric_history(run.info.run_id, "fold_accuracy")
        assert [point.value for point in sorted(history, key=lambda p: p.step)] == list(trial.accuracies)
    artifacts = {item.path for item in client.list_artifacts(parent.info.run_id)}
    assert {"history.png", "study.json", "trials.csv"} <= artifacts
    assert len({trial.value for trial in stored.values()}) < 3 or "importance.png" in artifacts
    assert parent.data.metrics["best_validation_accuracy"] == max(trial.value for trial in stored.values())
    assert json.loads(parent.data.tags["best"])
    assert parent.data.params["validation"] == "budget" and parent.data.params["splits"] == "stratified"
    assert parent.data.tags["settings"] == TUNED_ON["pooled"]


def test_a_store_that_dies_costs_a_warning_and_is_completed_later(
    workspace: Make, tuning: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException

    folder, grid = workspace(), tuning.grid(("none",))
    with monkeypatch.context() as patch:

        def dead(self: MlflowClient, *arguments: object, **named: object) -> None:
            raise MlflowException("gone away")

        patch.setattr(MlflowClient, "create_run", dead)
        code, out = tuning.tune(grid, folder, 2)
    assert code == 0 and out.count("stopped answering") == 1
    assert tuning.tune(grid, folder, 2)[0] == 0
    client = MlflowClient(Workspace(folder).tracking_uri)
    runs = client.search_runs([client.get_experiment_by_name("small-tuning").experiment_id])
    assert len(runs) == 4, "the method and its three folds"
