"""`bench ui`: it ends with its server, whatever ends it, and a port that is taken is said first."""

from __future__ import annotations

import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from bench.registry import UserError
from bench.results.workspace import Workspace
from bench.tracking import guard
from bench.tracking.guard import GRACE_SECONDS
from bench.tracking.server import check_port, last_words

Bench = Callable[..., tuple[int, str, str]]
PRETENDER = """
import os, signal, subprocess, sys, time
if sys.argv[1:] == ["child"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it does not end when it is asked to
    time.sleep(600)
if "--fail" in os.environ.get("PRETEND", ""):
    sys.exit("ValueError: no such thing")
subprocess.Popen([sys.executable, __file__, "child"])
open("started", "w").write(" ".join(sys.argv[1:]))
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace, and a module `mlflow` that only pretends to serve and has a stubborn child."""
    (tmp_path / "pretend").mkdir()
    (tmp_path / "pretend" / "mlflow.py").write_text(PRETENDER)
    folder = tmp_path / "w %41?"
    folder.mkdir()
    (folder / "ledger.jsonl").touch()
    return folder


def start(home: Path, tools: ModuleType, *words: str, pretend: str = "") -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(home.parent / "pretend"), str(tools.ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", "from bench.cli.app import main; main()", "ui", "-w", str(home), *words],
        env={**os.environ, "PYTHONPATH": paths, "PRETEND": pretend, "COLUMNS": "400"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_whatever_ends_bench_ui_ends_its_server(ending: signal.Signals, home: Path, tools: ModuleType) -> None:
    port = free_port()
    ui = start(home, tools, "--port", port)
    tools.wait_until(lambda: (home / "started").is_file() and (home / "started").read_text() != "", 60)
    words = (home / "started").read_text()
    assert "--backend-store-uri sqlite:///mlflow.db" in words and f"--port {port}" in words
    assert "%20%2541%3F/artifacts" in words, "its address as a URL"
    family = psutil.Process(ui.pid).children(recursive=True)
    assert len(family) == 3, "the guard, the server and its child"
    ui.send_signal(ending)
    out, err = ui.communicate(timeout=60)
    assert ui.returncode == {signal.SIGINT: 130, signal.SIGKILL: -signal.SIGKILL}.get(ending, 128 + ending)
    end = time.monotonic() + 4 * GRACE_SECONDS
    while any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in family):
        assert time.monotonic() < end, "the server lives on"
        time.sleep(0.1)
    assert f"http://127.0.0.1:{port}" in out and "Traceback" not in err


def test_a_server_that_ends_by_itself_is_one_line(home: Path, tools: ModuleType) -> None:
    ui = start(home, tools, "--port", free_port(), pretend="--fail")
    _, err = ui.communicate(timeout=60)
    assert ui.returncode == 2
    assert "MLflow's server ended with code 1 (ValueError: no such thing)" in err and "mlflow-ui.log" in err
    assert len(err.splitlines()) == 1
    assert last_words(Workspace(home / "absent")) == "it left no log"


def test_a_taken_port_is_said_before_anything_starts(home: Path, bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = bench("ui", "-w", str(home), "--port", str(port))
    assert (code, out) == (2, "")
    assert f"cannot listen on 127.0.0.1 port {port}: Address already in use" in err and "--port" in err
    assert len(err.splitlines()) == 1 and not (home / "started").exists() and not (home / "mlflow-ui.log").exists()


def test_a_system_without_process_groups_is_said_in_one_line(
    home: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "killpg")  # as on Windows
    monkeypatch.delattr(signal, "SIGHUP")
    runpy.run_path(guard.__file__)  # importing it does not fail
    code, out, err = bench("ui", "-w", str(home), "--port", free_port())
    assert (code, out) == (2, "") and len(err.splitlines()) == 1
    assert "bench ui needs process groups" in err and "mlflow ui --backend-store-uri sqlite:///mlflow.db" in err
    assert not (home / "started").exists() and not (home / "mlflow-ui.log").exists()


def test_a_host_that_is_not_ours_is_said_too() -> None:
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1 port 5000"):
        check_port("192.0.2.1", 5000)
    with pytest.raises(UserError, match=r"cannot listen on no\.such\.host\.invalid"):
        check_port("no.such.host.invalid", 5000)
    check_port("localhost", int(free_port()))
