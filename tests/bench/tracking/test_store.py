"""Opening a store: any name of a workspace, no word of MLflow's in the terminal, one line when it cannot be used."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.registry import UserError
from bench.results.workspace import Workspace
from bench.tracking import store
from bench.tracking.cells import Mirror
from bench.tracking.store import StoreFailure, be_quiet, told_by_the_store
from bench.tuning.storage import Storage, default_url, existing_storage

ODD = ["w%20x", "w?q=1", "a#b", "sp ace", "ünï", "qu'o\"te", "100%", "a;b&c=d", "[x]", "a@b:c", "back\\slash"]


@pytest.mark.parametrize("name", ODD)
def test_a_workspace_may_have_any_name(name: str, tmp_path: Path, mlflow_store: Path, tools: ModuleType) -> None:
    workspace = Workspace(tools.prepare(tmp_path / name, mlflow_store))
    mirror = Mirror(workspace.tracking_uri, workspace.artifacts)
    run = mirror.client.create_run(mirror.experiment("50% of? #1")).info.run_id
    (tmp_path / "note.txt").write_text("hello")
    mirror.client.log_artifact(run, str(tmp_path / "note.txt"))
    assert [path.read_text() for path in workspace.artifacts.rglob("note.txt")] == ["hello"]
    assert Path(mirror.client.download_artifacts(run, "note.txt")).read_text() == "hello"
    Storage(default_url(workspace)).new_study("one")
    assert existing_storage(None, workspace).names() == ["one"]
    assert {"mlflow.db", "tuning.db", "artifacts"} <= {path.name for path in workspace.root.iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == {name, "note.txt"}, "and nothing beside it"


@pytest.mark.parametrize("name", ["new %41?", "plain"])
def test_a_new_store_is_made_in_its_place_and_nowhere_else(name: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / name)
    workspace.prepare()
    mirror = Mirror(workspace.tracking_uri, workspace.artifacts)
    assert not list(workspace.root.iterdir()), "made when something is written"
    mirror.client.search_experiments(max_results=1)
    assert [path.name for path in workspace.root.iterdir()] == ["mlflow.db"]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("content", [b"no database at all, but long enough to look at" * 30, b"SQLite format 3\0cut"])
def test_a_damaged_store_is_one_line_at_once(content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "mlflow.db").write_bytes(content)
    start = time.monotonic()
    with pytest.raises(UserError, match=r"the tracking store .* cannot be used: .*; make room for it or choose"):
        Mirror(workspace.tracking_uri, workspace.artifacts)
    assert time.monotonic() - start < 30, "MLflow alone tries for over a minute"
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("uri", ["postgresql://127.0.0.1:9/x", "mysql+pymysql://u@127.0.0.1:9/x", "http://[::1]:nine"])
def test_a_database_server_that_is_not_there_is_told_in_seconds(uri: str, tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(UserError, match=r"cannot be used: .*; start that server"):
        Mirror(uri, tmp_path)
    assert time.monotonic() - start < 30


def test_what_mlflow_and_its_threads_log_and_raise_stays_out_of_the_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    be_quiet()
    be_quiet()
    for name in (
        "mlflow.store.db.utils",
        "alembic.runtime",
        "sqlalchemy.pool.impl.QueuePool",
        "urllib3.connectionpool",
    ):
        try:
            raise RuntimeError("deep inside")
        except RuntimeError:
            logging.getLogger(name).exception("it failed")

    def raises(owner: str) -> Callable[[], None]:
        found: dict[str, Any] = {"__name__": owner}
        exec("def work(): raise RuntimeError('of ' + __name__)", found)  # a function of that module
        work: Callable[[], None] = found["work"]
        return work

    for owner in ("mlflow.utils.async_logging", "somebody"):
        thread = threading.Thread(target=raises(owner))
        thread.start()
        thread.join()
    err = capfd.readouterr().err
    assert "mlflow" not in err and "deep inside" not in err
    assert "of somebody" in err, "what other threads raise is still told"


def test_every_kind_of_failure_is_one_line() -> None:
    import sqlite3

    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import OperationalError

    for error in (
        MlflowException("first\nsecond"),
        OperationalError("first\nsecond", None, Exception("first")),
        sqlite3.DatabaseError("first\nsecond"),
        OSError("first\nsecond"),
    ):
        with pytest.raises(StoreFailure, match=r"^.*first.*$") as caught, told_by_the_store():
            raise error
        assert "\n" not in str(caught.value)
    with pytest.raises(ZeroDivisionError), told_by_the_store():
        raise ZeroDivisionError  # a mistake of ours is not the store's
    assert store.first_line(OSError()) == "OSError"


def test_a_run_on_a_damaged_store_prints_no_traceback(tmp_path: Path, tools: ModuleType) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "mlflow.db").write_bytes(b"no database" * 500)
    words = ["run", "-w", str(folder), "-d", "synthetic:graphs=60", "-k", "2", "--folds", "1", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", "from bench.cli.app import main; main()", *words],
        env={**os.environ, "PYTHONPATH": str(tools.ROOT), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be used" in done.stderr and "Traceback" not in done.stderr + done.stdout
