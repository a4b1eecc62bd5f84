"""`bench tune` as a user meets it: search, status, tuned runs and tables, MLflow, and mistakes in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mlflow import MlflowClient

from bench.execution.trial import TrialRunner, engines
from bench.plan.cells import TUNED_ON, Trial
from bench.plan.planner import Planner
from bench.registry import UserError
from bench.results.ledger import read_records
from bench.results.records import CellRecord
from bench.results.workspace import Workspace
from bench.tuning.best import tuned_plan
from bench.tuning.storage import Storage
from bench.tuning.summary import studies_in
from models import BACKBONES

Make = Callable[..., Path]
Bench = Callable[..., tuple[int, str, str]]
WORDS = ["-d", "synthetic:graphs=60", "-k", "2", "--epochs", "2", "--folds", "2", "-j", "1", "--space", "gcn.dropout=0"]


def test_search_look_measure_and_print(bench: Bench, workspace: Make) -> None:
    folder = str(workspace())
    methods = ["-a", "none", "-a", "dropedge"]
    code, out, _ = bench("tune", *WORDS, *methods, "-n", "4", "-w", folder)
    assert code == 0 and "2 methods; for each 2 studies, one per fold, of 4 trials" in out
    assert "8 trainings at most" in out and "as many per class as there are labels" in out
    code, out, _ = bench("tune", "--status", "-w", folder)
    assert code == 0
    rows = [line for line in out.splitlines() if "│ synthetic" in line]
    assert len(rows) == 2 and all("2/2" in row and "8/8" in row and "by fold" in row for row in rows), "one a method"
    assert out.count("of 2 folds") == 2, "the best settings of each"
    code, out, _ = bench("tune", "--by-fold", "-w", folder)
    assert code == 0 and sum("│   fold " in line for line in out.splitlines()) == 4
    assert sum(", trial " in line for line in out.splitlines()) == 4, "those of each fold"
    run = ["run", *WORDS[:-2], *methods, "--repeats", "1", "-w", folder]
    assert bench(*run)[0] == 0
    code, out, _ = bench(*run, "--tuned")
    assert code == 0 and "dropedge, tuned" in out
    code, out, _ = bench("tables", "-w", folder, "--settings", "default,tuned")
    assert code == 0 and all(name in out for name in ("GCN (tuned)", "DropEdge (tuned)", TUNED_ON["nested"]))
    cells = [one.cell for one in read_records(Path(folder) / "ledger.jsonl") if isinstance(one, CellRecord)]
    tuned = {cell.tuned_from["augmenter"]: cell for cell in cells if cell.tuned}
    assert len(tuned) == 2 and len(cells) == 4
    for study in studies_in(Storage(f"sqlite:///{folder}/tuning.db")):
        fold = tuned[study.facts["augmenter"]].at(study.fold)
        assert fold.training.lr == study.best.settings["training.lr"]
        assert fold.backbone.settings["width"] == study.best.settings["backbone.width"]
    code, out, _ = bench("why", "-w", folder, tuned["dropedge"].key)
    assert code == 0 and TUNED_ON["nested"] in out and "  fold 0: dropedge" in out and "  fold 1: dropedge" in out
    code, out, _ = bench("verify", "--from", folder, "--sample", "8")
    assert code == 0, out


def test_pooled_settings_are_called_so_wherever_they_are_shown(bench: Bench, workspace: Make) -> None:
    folder, words = str(workspace()), [*WORDS[:-2], "-a", "none", "--repeats", "1"]
    said = TUNED_ON["pooled"]
    code, out, _ = bench("tune", *WORDS, "-n", "3", "-w", folder, "--pooled")
    assert code == 0 and "1 study of 3 trials, each on 2 folds" in out and out.count(said) == 2
    assert said in bench("tune", "--status", "-w", folder)[1]
    code, _, err = bench("run", *words, "-w", folder, "--tuned")
    assert code == 2 and "there is no nested study" in err and len(err.strip().splitlines()) == 1
    code, _, err = bench("run", *words, "-w", folder, "--pooled")
    assert code == 2 and "add --tuned" in err
    code, out, _ = bench("run", *words, "-w", folder, "--tuned", "--pooled")
    assert code == 0 and "none, tuned (pooled)" in out and said in " ".join(out.split())
    assert bench("run", *words, "-w", folder)[0] == 0
    assert said in bench("status", "-w", folder)[1]
    code, out, _ = bench("tables", "-w", folder, "--settings", "default,tuned")
    assert code == 0 and "GCN (tuned, pooled)" in out and said in out
    client = MlflowClient(Workspace(Path(folder)).tracking_uri)
    runs = client.search_runs([client.get_experiment_by_name("custom").experiment_id], "params.tuned = 'True'")
    assert [run.data.params["tuned_how"] for run in runs] == [said]


def test_tuned_and_default_arms_start_from_the_same_weights_where_shapes_allow_it(
    workspace: Make, tuning: ModuleType, tmp_path: Path
) -> None:
    folder, grid = workspace(), tuning.grid(("none",), folds=2)
    fixed = {"width": "64", "layers": "4", "dropout": "0.3|0.4", "lr": "0.004", "weight_decay": "0"}
    assert tuning.tune(grid, folder, 2, narrowing=fixed)[0] == 0
    planner = Planner(tmp_path / "data", "fast")
    [default], [tuned] = planner.plan(grid).cells, tuned_plan(planner.plan(grid), Storage(tuning.url(folder))).cells
    runner = TrialRunner(tmp_path / "data", engines()["fast"]())
    here = tuned.at(1)
    assert "dropout=0." in here.backbone.label and here.training.lr == 0.004
    one, other = (runner.problem(cell, Trial(1, 0))[0] for cell in (default, here))
    assert (one.init_seed, one.pretrain_seed) == (other.init_seed, other.pretrain_seed)
    wide = replace(here, backbone=BACKBONES.resolve("gcn:width=8"))
    assert runner.problem(wide, Trial(1, 0))[0].init_seed != one.init_seed


def test_trials_that_do_not_fit_into_the_memory_fail_and_say_so(bench: Bench, workspace: Make) -> None:
    code, out, _ = bench("tune", *WORDS, "-a", "none", "-n", "2", "-w", str(workspace()), "--memory", "100MB")
    assert code == 1
    failures = [line for line in out.splitlines() if "failed: this trial" in line]
    assert failures and all("more than the 0.1 GiB of --memory" in line for line in failures)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "0"], ["--trials 0 searches nothing", "1 or more"]),
        (["--memory", "12parsecs"], ["--memory 12parsecs is not an amount of memory", "4GiB"]),
        (["--memory", "4GiB", "--executor", "dask"], ["the executor dask sets its own limit per worker"]),
        (["--timeout", "0"], ["--timeout 0 leaves no time"]),
        (["--sampler", "tpee"], ["unknown sampler 'tpee'", "Did you mean: tpe"]),
        (["--pruner", "hyper"], ["unknown pruner 'hyper'", "median"]),
        (["--validation", "some"], ["unknown validation 'some'", "budget"]),
        (["--space", "lr=0.1..0.01"], ["training.lr=0.1..0.01 is empty"]),
        (["--space", "lrr=0.1"], ["unknown setting in the search space 'lrr'", "lr"]),
        (["--storage", "nonsense"], ["--storage nonsense is not a storage URL", "sqlite:///FILE"]),
        (["--storage", "sqlite://"], ["keeps nothing"]),
        (["--storage", "mongodb://h/d"], ["--storage mongodb://h/d"]),
        (["--storage", "sqlite:////nowhere/at/all.db"], ["cannot be opened: the folder /nowhere/at"]),
        (
            ["--storage", "postgresql+psycopg://u:secret@127.0.0.1:1/d"],
            ["u:***@127.0.0.1", "cannot be opened", "leave --storage out"],
        ),
        (["--storage", "mysql+nodriver://u@127.0.0.1/d"], ["needs a driver that is not installed"]),
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
    folder, planner = workspace(), Planner(tmp_path / "data", "fast")
    grid = tuning.grid(("none", "dropedge"))
    narrowing = {"gcn.dropout": "0"}
    assert tuning.tune(replace(grid, cells=grid.cells[:1]), folder, 3, narrowing=narrowing)[0] == 0
    storage = Storage(tuning.url(folder))
    with pytest.raises(UserError, match=r"there is no nested study of .*dropedge gcn.* make it with bench tune"):
        tuned_plan(planner.plan(grid), storage)
    assert tuning.tune(replace(grid, cells=grid.cells[1:]), folder, 2, narrowing=narrowing)[0] == 0
    with pytest.raises(
        UserError, match=r"dropedge gcn .*, fold 0' has 2 of 3 trials; complete it with bench tune --trials 3"
    ):
        tuned_plan(planner.plan(grid), storage)
    assert tuning.tune(replace(grid, cells=grid.cells[1:]), folder, 3, narrowing=narrowing)[0] == 0
    plan = tuned_plan(planner.plan(grid), storage)
    assert [cell.tuned_from for cell in plan.cells] == [
        {"augmenter": "none", "backbone": "gcn"},
        {"augmenter": "dropedge", "backbone": "gcn"},
    ]
    assert all(cell.tuned and cell.training.preset == "standard+epochs=2" for cell in plan.cells)
    assert all(set(cell.by_fold) == {"0", "1", "2"} and cell.tuned_how == "nested" for cell in plan.cells)
    fewer = tuned_plan(planner.plan(replace(grid, folds=1)), storage)
    assert [cell.key for cell in fewer.cells] == [cell.key for cell in plan.cells], "a run over fewer folds goes on"
    with pytest.raises(UserError, match=r"no study of .*, fold 3' in .*make it with bench tune --folds 4"):
        tuned_plan(planner.plan(replace(grid, folds=4)), storage)
    with pytest.raises(UserError, match=r"there is no pooled study of .*bench tune --pooled"):
        tuned_plan(planner.plan(grid), storage, pooled=True)
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


def test_a_fold_without_a_finished_trial_makes_the_cell_impossible(workspace: Make, tuning: ModuleType) -> None:
    folder, planner = workspace(), Planner(Path("nowhere"), "fast")
    storage, grid = Storage(tuning.url(folder)), tuning.grid(("none",), folds=tuning.FOLDS, preset="quick")

    def answer(work: dict[str, Any]) -> Any:
        return {"status": "failed", "reason": "boom"} if work["fold"] == 2 else tuning.pretended(work)

    tuning.search(tuning.by_fold(storage, tuning.cell("none"), 3), tuning.PretendingPool(answer=answer))
    with pytest.raises(UserError, match=r"the study '.*, fold 2' has no complete trial; see `bench tune --status`"):
        tuned_plan(planner.plan(grid), storage)


def test_methods_that_were_searched_in_other_ways_are_not_put_side_by_side(workspace: Make, tuning: ModuleType) -> None:
    folder, grid, planner = workspace(), tuning.grid(("none", "dropedge"), folds=1), Planner(Path("nowhere"), "fast")
    for place, validation in enumerate(("budget", "full")):
        one = replace(grid, cells=grid.cells[place : place + 1])
        assert tuning.tune(one, folder, 1, validation=validation)[0] == 0
    with pytest.raises(
        UserError, match=r"with validation full, '.*' with budget; tune both with the same --validation"
    ):
        tuned_plan(planner.plan(grid), Storage(tuning.url(folder)))


def test_a_dask_cluster_finds_what_one_process_finds(workspace: Make, tuning: ModuleType) -> None:
    grid, found = tuning.grid(("none", "dropedge"), folds=2), []
    for name, options in (("alone", {}), ("dask", {"jobs": 1, "executor": "dask"})):
        folder = workspace(name)
        assert tuning.tune(grid, folder, 3, **options)[0] == 0
        studies = studies_in(Storage(tuning.url(folder)))
        trials = [sorted(study.trials, key=lambda trial: trial.turn) for study in studies]
        found.append([[(t.turn, t.state, t.value, t.accuracies, t.settings) for t in study] for study in trials])
    assert found[0] == found[1]
