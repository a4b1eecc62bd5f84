"""MLflow's server as a guest: it ends with the process that started it, however that process ends.

The server runs under a guard in its own process group, and the guard holds one end of a pipe. When the other end
closes, because it was closed explicitly or its process was killed, the guard ends the server and everything it has
started.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.registry import UserError
from bench.results.workspace import Workspace
from bench.tracking.guard import GRACE_SECONDS

LOG = "mlflow-ui.log"


def check_system() -> None:
    """Report right away that this system cannot end a server with everything that it has started."""
    if not hasattr(os, "killpg"):
        raise UserError(
            "bench ui needs process groups, which this system does not have; run in the workspace: "
            "mlflow ui --backend-store-uri sqlite:///mlflow.db"
        )


def check_port(host: str, port: int) -> None:
    """Report right away that the port cannot be used, instead of MLflow's error after some seconds."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        socket.create_server(address[:2], family=family).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"cannot listen on {host} port {port}: {reason}; stop what listens there, or choose another with --port"
        ) from error


@contextmanager
def running_ui(home: Workspace, host: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run MLflow's UI on a workspace during a `with` block; its output goes to a file in the workspace."""
    # From within the workspace, so that MLflow need not be passed its path, which may contain any characters.
    words = ["ui", "--backend-store-uri", "sqlite:///mlflow.db", "--host", host, "--port", str(port), "--workers", "1"]
    words += ["--default-artifact-root", home.artifacts.resolve().as_uri()]
    settings = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with _log(home.root / LOG) as log:
        guard = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve().with_name("guard.py")), *words],
            cwd=home.root,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield guard
    finally:
        if guard.stdin is not None:
            guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(2 * GRACE_SECONDS)


@contextmanager
def _log(path: Path) -> Iterator[int]:
    """A new log; none in a read-only workspace."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    except OSError:
        handle = os.open(os.devnull, os.O_WRONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def last_words(home: Workspace) -> str:
    """The end of the log of a server that ended by itself."""
    try:
        lines = (home.root / LOG).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "it left no log"
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it left no log")
