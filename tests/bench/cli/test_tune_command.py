"""`bench tune` as a user meets it: search, status, tuned runs and tables, MLflow, and mistakes in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from mlflow import MlflowClient

from bench.cli.tuning_status import studies_in
from bench.registry import UserError
from bench.results.ledger import read_records
from bench.results.workspace import Workspace
from bench.tuning.best import tuned_plan
from bench.tuning.storage import Storage

Make = Callable[..., Path]
Bench = Callable[..., tuple[int, str, str]]
WORDS = ["-d", "synthetic:graphs=60", "-k", "2", "--epochs", "2", "--folds", "2", "-j", "1", "--space", "gcn.dropout=0"]


def test_search_look_measure_and_print(bench: Bench, workspace: Make) -> None:
    folder = str(workspace())
    methods = ["-a", "none", "-a", "dropedge"]
    code, out, _ = bench("tune", *WORDS, *methods, "-n", "4", "-w", folder)
    assert code == 0 and "2 studies of 4 trials" in out and "as many per class as there are labels" in out
    code, out, _ = bench("tune", "--status", "-w", folder)
    assert code == 0
    rows = [line for line in out.splitlines() if "│ synthetic" in line]
    assert len(rows) == 2 and all("4/4" in row and "budget" in row for row in rows)
    assert out.count("trial ") == 2, "the best settings of each"
    run = ["run", *WORDS[:-2], *methods, "--repeats", "1", "-w", folder]
    assert bench(*run)[0] == 0
    code, out, _ = bench(*run, "--tuned")
    assert code == 0 and "dropedge, tuned" in out
    code, out, _ = bench("tables", "-w", folder, "--settings", "default,tuned")
    assert code == 0 and all(name in out for name in ("GCN (tuned)", "DropEdge (tuned)"))
    cells = [record for record in read_records(Path(folder) / "ledger.jsonl") if record["type"] == "cell"]
    tuned = {cell["tuned_from"]["augmenter"]: cell for cell in cells if cell["tuned"]}
    best = {study.facts["augmenter"]: study.best for study in studies_in(Storage(f"sqlite:///{folder}/tuning.db"))}
    for name, cell in tuned.items():
        found = best[name].settings
        assert cell["training"]["lr"] == found["training.lr"]
        assert cell["backbone"]["settings"]["width"] == found["backbone.width"]
    assert len(tuned) == 2 and len(cells) == 4


def test_trials_that_do_not_fit_into_the_memory_fail_and_say_so(bench: Bench, workspace: Make) -> None:
    code, out, _ = bench("tune", *WORDS, "-a", "none", "-n", "2", "-w", str(workspace()), "--memory", "100MB")
    assert code == 1
    failures = [line for line in out.splitlines() if "failed: this trial" in line]
    assert len(failures) == 2 and all("more than the 0.1 GiB of --memory" in line for line in failures)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "0"], ["--trials 0 searches nothing", "1 or more"]),
        (["--memory", "12parsecs"], ["--memory 12parsecs is not an amount of memory", "4GiB"]),
        (["--memory", "4GiB", "--executor", "dask"], ["workers of the executor dask have a limit of their own"]),
        (["--timeout", "0"], ["--timeout 0 leaves no time"]),
        (["--sampler", "tpee"], ["unknown sampler 'tpee'", "Did you mean: tpe"]),
        (["--pruner", "hyper"], ["unknown pruner 'hyper'", "median"]),
        (["--validation", "some"], ["unknown validation 'some'", "budget"]),
        (["--space", "lr=0.1..0.01"], ["training.lr=0.1..0.01 is empty"]),
        (["--space", "lrr=0.1"], ["unknown setting in the search space 'lrr'", "lr"]),
        (["--storage", "nonsense"], ["--storage nonsense is not a storage URL", "sqlite:///FILE"]),
        (["--storage", "sqlite://"], ["keeps nothing"]),
        (["--storage", "mongodb://h/d"], ["--storage mongodb://h/d"]),
        (["--storage", "sqlite:////nowhere/at/all.db"], ["cannot be opened: there is no folder /nowhere/at"]),
        (
            ["--storage", "postgresql+psycopg://u:secret@127.0.0.1:1/d"],
            ["u:***@127.0.0.1", "cannot be opened", "leave --storage out"],
        ),
        (["--storage", "mysql+nodriver://u@127.0.0.1/d"], ["needs a driver that is not here"]),
        (["--executor", "spark"], ["unknown executor 'spark'"]),
        (["-a", "dropegde"], ["Did you mean: dropedge"]),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_begun(
    bench: Bench, tmp_path: Path, words: list[str], said: list[str]
) -> None:
    code, _, err = bench("tune", *WORDS[:-2], *words, "-w", str(tmp_path / "runs"))
    assert code == 2 and len(err.strip().splitlines()) == 1, err
    assert err.startswith("error: ") and all(part in err for part in said), err
    assert not (tmp_path / "runs" / "tuning.db").exists() and not (tmp_path / "runs" / "mlflow.db").exists()


def test_what_is_not_there_is_told(bench: Bench, tmp_path: Path) -> None:
    for words in (["tune", "--status"], ["run", *WORDS[:-2], "--tuned"]):
        code, _, err = bench(*words, "-w", str(tmp_path / "none"))
        assert code == 2 and "there are no studies at" in err
    code, _, err = bench("run", *WORDS[:-2], "--storage", "sqlite:///x.db", "-w", str(tmp_path / "none"))
    assert code == 2 and "add --tuned" in err
    assert not (tmp_path / "none").exists()


def test_a_study_from_another_search_space_is_told_in_one_line(bench: Bench, workspace: Make) -> None:
    folder = str(workspace())
    assert bench("tune", *WORDS, "-n", "1", "-w", folder)[0] == 0
    for words, said in ((WORDS[:-2], "another search space"), ([*WORDS, "--validation", "full"], "another validation")):
        code, _, err = bench("tune", *words, "-n", "1", "-w", folder)
        assert code == 2 and said in err and len(err.strip().splitlines()) == 1


def test_studies_unfit_for_a_tuned_run_are_refused(workspace: Make, tuning: ModuleType, tmp_path: Path) -> None:
    from bench.plan.planner import Planner

    folder, planner = workspace(), Planner(tmp_path / "data", "fast")
    grid = tuning.grid(("none", "dropedge"))
    narrowing = {"gcn.dropout": "0"}
    assert tuning.tune(replace(grid, cells=grid.cells[:1]), folder, 3, narrowing=narrowing)[0] == 0
    storage = Storage(tuning.url(folder))
    with pytest.raises(UserError, match=r"there is no study of .*dropedge gcn.* make it with bench tune"):
        tuned_plan(planner.plan(grid), storage)
    assert tuning.tune(replace(grid, cells=grid.cells[1:]), folder, 2, narrowing=narrowing)[0] == 0
    with pytest.raises(UserError, match=r"dropedge gcn .* has 2 of 3 trials; complete it with bench tune --trials 3"):
        tuned_plan(planner.plan(grid), storage)
    assert tuning.tune(replace(grid, cells=grid.cells[1:]), folder, 3, narrowing=narrowing)[0] == 0
    plan = tuned_plan(planner.plan(grid), storage)
    assert [cell.tuned_from for cell in plan.cells] == [
        {"augmenter": "none", "backbone": "gcn"},
        {"augmenter": "dropedge", "backbone": "gcn"},
    ]
    assert all(cell.tuned and cell.training.preset == "paper" for cell in plan.cells)
    with pytest.raises(UserError, match=r"was made with features constant, this run has degree; .*--features degree"):
        tuned_plan(planner.plan(replace(grid, features="degree")), storage)
    with pytest.raises(UserError, match="was made with epochs 2, this run has 3"):
        tuned_plan(planner.plan(replace(grid, training={"epochs": 3})), storage)
    default = planner.plan(grid)
    others = [replace(cell, splits="CHEMICAL") for cell in default.cells]
    with pytest.raises(UserError, match="was made with splits stratified, this run has CHEMICAL"):
        tuned_plan(replace(default, cells=tuple(others)), storage)
    newer = [replace(cell, versions={**cell.versions, "backbone": 99}) for cell in default.cells]
    with pytest.raises(UserError, match="was made with backbone version 1, this run has 99"):
        tuned_plan(replace(default, cells=tuple(newer)), storage)


def test_trials_are_child_runs_of_their_study_in_mlflow(workspace: Make, tuning: ModuleType) -> None:
    folder, grid = workspace(), tuning.grid(("none",))
    home = Workspace(folder)
    client = MlflowClient(home.tracking_uri)
    assert tuning.tune(grid, folder, 3, sampler="random", pruner="none")[0] == 0
    assert tuning.tune(grid, folder, 5, sampler="random", pruner="none")[0] == 0
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
        assert [point.value for point in sorted(history, key=lambda p: p.step)] == list(trial.folds)
    artifacts = {item.path for item in client.list_artifacts(parent.info.run_id)}
    assert {"history.png", "study.json", "trials.csv"} <= artifacts
    assert len({trial.value for trial in stored.values()}) < 3 or "importance.png" in artifacts
    assert parent.data.metrics["best_validation_accuracy"] == max(trial.value for trial in stored.values())
    assert json.loads(parent.data.tags["best"])
    assert parent.data.params["validation"] == "budget" and parent.data.params["splits"] == "stratified"


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
    assert len(runs) == 3


def test_a_dask_cluster_finds_what_one_process_finds(workspace: Make, tuning: ModuleType) -> None:
    grid, found = tuning.grid(("none", "dropedge"), folds=2), []
    for name, options in (("alone", {}), ("dask", {"jobs": 1, "executor": "dask"})):
        folder = workspace(name)
        assert tuning.tune(grid, folder, 3, **options)[0] == 0
        studies = studies_in(Storage(tuning.url(folder)))
        trials = [sorted(study.trials, key=lambda trial: trial.turn) for study in studies]
        found.append([[(t.turn, t.state, t.value, t.folds, t.settings) for t in study] for study in trials])
    assert found[0] == found[1]
