"""The MLflow mirror: what a run of it holds, that it can be rebuilt, and that a server may come and go."""

from __future__ import annotations

import csv
import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.execution.serial import SerialPool
from bench.registry import UserError
from bench.results.workspace import Workspace
from bench.tracking.cells import CELL_TAG, Mirror, sync_mirror

Make = Callable[..., Path]


def runs_of(mirror: Mirror, grid: str = "small") -> list[Any]:
    experiment = mirror.client.get_experiment_by_name(grid)
    return list(mirror.client.search_runs([experiment.experiment_id])) if experiment else []


def contents(mirror: Mirror, grid: str = "small") -> dict[str, Any]:
    """What an experiment says of each cell; run ids and times are the store's own."""
    return {
        run.data.tags[CELL_TAG]: (run.data.params, run.data.metrics, run.info.status) for run in runs_of(mirror, grid)
    }


def own_store(folder: Path) -> Mirror:
    return Mirror(Workspace(folder).tracking_uri, Workspace(folder).artifacts)


@pytest.fixture
def finished(workspace: Make, tools: ModuleType) -> Path:
    folder = workspace()
    assert tools.run(tools.grid(["none", "gdm-acc"], folds=3, epochs=3), folder)[0] == 0
    return folder


def test_a_run_of_mlflow_is_a_cell_with_all_that_compares_it(finished: Path, tools: ModuleType) -> None:
    mirror, state = own_store(finished), tools.state(finished)
    runs = {run.data.params["augmenter"]: run for run in runs_of(mirror)}
    assert set(runs) == {"none", "gdm-acc"}
    run = runs["gdm-acc"]
    key = run.data.tags[CELL_TAG]
    trials = [state.trials[key][trial] for trial in sorted(state.trials[key])]
    params = run.data.params
    assert (params["k"], params["backbone"], params["readout"]) == ("2", "gcn", "mean")
    assert (params["training.epochs"], params["augmenter.eps"], params["splits"]) == ("3", "0.1", "stratified")
    assert params["version.torch"] == state.cells[key].versions["torch"]
    accuracies = [record.accuracy for record in trials]
    assert run.data.metrics["accuracy"] == pytest.approx(100 * sum(accuracies) / 3, abs=1e-4)
    assert {"accuracy_std", "balanced_accuracy", "seconds_train", "generated_density"} <= set(run.data.metrics)
    history = mirror.client.get_metric_history(run.info.run_id, "trial_accuracy")
    assert [point.value for point in sorted(history, key=lambda point: point.step)] == [100 * one for one in accuracies]
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == (params["dataset"], params["version.dataset"])
    assert run.info.run_name == f"gdm-acc {params['dataset']} k=2"
    assert {"augbench.commit", "augbench.dirty", "augbench.version"} <= set(run.data.tags)
    folder = Path(mirror.client.download_artifacts(run.info.run_id, ""))
    rows = list(csv.DictReader((folder / "trials.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["accuracy"]) for row in rows] == accuracies
    assert {"seconds_train", "generated_density", "fold", "status"} <= set(rows[0])
    assert json.loads((folder / "cell.json").read_text(encoding="utf-8"))["key"] == key
    (origin,) = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert {"commit", "dirty", "python", "torch", "machine"} <= set(origin)


def test_a_failed_trial_is_counted_and_its_reason_is_in_the_csv(
    workspace: Make, tools: ModuleType, misbehaving: str
) -> None:
    folder = workspace()
    tools.run(tools.grid([f"{misbehaving}:Raises"]), folder)
    mirror = own_store(folder)
    (run,) = runs_of(mirror)
    assert run.data.metrics["trials_failed"] == 2 and run.data.metrics["trials_done"] == 0
    text = Path(mirror.client.download_artifacts(run.info.run_id, "trials.csv")).read_text(encoding="utf-8")
    assert text.count("boom [not markup]") == 2


def test_sync_is_idempotent_and_completes_any_store(finished: Path, workspace: Make, tools: ModuleType) -> None:
    assert sync_mirror(Workspace(finished), None) == (0, 2)
    other = Workspace(workspace("other"))
    assert sync_mirror(Workspace(finished), other.tracking_uri) == (2, 0)
    assert sync_mirror(Workspace(finished), other.tracking_uri) == (0, 2)
    assert contents(own_store(finished)) == contents(own_store(other.root))


def test_new_trials_replace_a_cells_run_and_never_double_it(finished: Path, tools: ModuleType) -> None:
    tools.run(tools.grid(["none", "gdm-acc"], folds=4, epochs=3), finished)
    runs = runs_of(own_store(finished))
    assert len(runs) == 2
    assert {run.data.metrics["trials_done"] for run in runs} == {4}


def test_doubled_and_half_written_runs_are_put_in_order(finished: Path) -> None:
    mirror = own_store(finished)
    first, second = runs_of(mirror)
    experiment = first.info.experiment_id
    mirror.client.create_run(experiment, tags=dict(first.data.tags))  # as two syncs at once would leave it
    mirror.client.update_run(second.info.run_id, status="RUNNING")  # as a kill in the middle would leave it
    sync_mirror(Workspace(finished), None)
    assert sync_mirror(Workspace(finished), None) == (0, 2)
    assert len(runs_of(mirror)) == 2


def test_an_experiment_that_was_deleted_in_the_ui_comes_back(finished: Path) -> None:
    mirror = own_store(finished)
    mirror.client.delete_experiment(mirror.experiment("small"))
    sync_mirror(Workspace(finished), None)
    assert len(runs_of(own_store(finished))) == 2


def test_a_store_that_cannot_be_used_is_told_in_seconds(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(
        UserError, match=r"the tracking store http://127\.0\.0\.1:9 cannot be used: .*start that server"
    ):
        Mirror("http://127.0.0.1:9", tmp_path)
    with pytest.raises(UserError, match="the tracking store nonsense://x cannot be used"):
        Mirror("nonsense://x", tmp_path)
    assert time.monotonic() - start < 10


def test_a_store_that_was_not_made_to_its_end_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    workspace = Workspace(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("mlflow.MlflowClient.search_experiments", stop)
        with pytest.raises(KeyboardInterrupt):
            _ = Mirror(workspace.tracking_uri, workspace.artifacts).client
    assert list(tmp_path.iterdir()) == []
    _ = Mirror(workspace.tracking_uri, workspace.artifacts).client
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]


@pytest.fixture
def server(workspace: Make, servers: ModuleType) -> Iterator[Any]:
    """A real MLflow server that can be stopped and started again on the same store."""
    folder = workspace("server")
    running = servers.MLflowServer(f"sqlite:///{folder / 'mlflow.db'}", folder / "artifacts")
    running.start()
    yield running
    running.stop()


def test_a_server_that_dies_on_the_way_costs_one_warning_and_sync_completes_it(
    server: Any,
    workspace: Make,
    tools: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    real, calls = SerialPool.submit, itertools.count()

    def with_outage(self: SerialPool, *work: Any) -> Future[Any]:
        """The server stops when it has the first cell."""
        if next(calls) == 1:
            mirror = Mirror(server.uri, folder)
            tools.wait_until(lambda: [run.info.status for run in runs_of(mirror)] == ["FINISHED"])
            server.stop()
        return real(self, *work)

    monkeypatch.setattr(SerialPool, "submit", with_outage)
    folder = workspace("runs")
    grid = tools.grid(["none", "duplicate", "dropedge", "m-mixup"], folds=1)
    code, out = tools.run(grid, folder, tracking_uri=server.uri)
    assert code == 0
    assert out.count("stopped answering") == 1 and "`bench sync` completes the store later" in out
    assert len(tools.results(folder)) == 4
    with pytest.raises(UserError, match="cannot be used"):
        sync_mirror(Workspace(folder), server.uri)
    server.start()
    assert sync_mirror(Workspace(folder), server.uri) == (3, 1)
    assert sync_mirror(Workspace(folder), server.uri) == (0, 4)
    assert "View run" not in capfd.readouterr().out  # MLflow would print two lines a cell
    reference = Workspace(workspace("reference"))
    sync_mirror(Workspace(folder), reference.tracking_uri)
    mirror = Mirror(server.uri, folder)
    assert contents(mirror) == contents(own_store(reference.root))
    (run, *_) = runs_of(mirror)
    assert {file.path for file in mirror.client.list_artifacts(run.info.run_id)} >= {"trials.csv", "cell.json"}
