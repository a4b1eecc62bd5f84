"""Opens an MLflow tracking store: quietly, within seconds, and with a one-line error if it cannot be used."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bench.results.workspace import sqlite_url
from bench.temporary import replacing, scratch_folder

if TYPE_CHECKING:
    from mlflow import MlflowClient

SQLITE = "sqlite:///"
REACH_SECONDS = 5
PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}
# Set before MLflow is imported: no telemetry, no log on the terminal, and unavailable servers are noticed
# in seconds, not minutes. We report errors ourselves, in one line.
SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
# The loggers of MLflow and its libraries, which log a traceback and raise the error as well.
LOGGERS = ("mlflow", "alembic", "sqlalchemy", "urllib3", "huey", "git")
_FOREIGN = ("mlflow", "alembic", "sqlalchemy", "urllib3", "requests")

for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)


class StoreFailure(OSError):
    """The store failed; the reason is one line."""


@contextmanager
def told_by_the_store() -> Iterator[None]:
    """Convert all errors of MLflow and its database to one type with a one-line reason."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except StoreFailure:
        raise
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise StoreFailure(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """The first line of an error message; MLflow's may be very long."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def open_store(uri: str) -> MlflowClient:
    """A client of the store at an address, creating a missing SQLite file; raises `StoreFailure` on errors."""
    from mlflow import MlflowClient

    be_quiet()
    with told_by_the_store(), without_stray_folders(uri):
        reach(uri)
        if uri.startswith(SQLITE):
            _make_store(sqlite_file(uri))
        client = MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    return client


def be_quiet() -> None:
    """Keep MLflow from writing to the terminal: its log, that of its libraries, and errors in its threads."""
    if os.environ.get("MLFLOW_LOGGING_LEVEL", "CRITICAL").upper() == "CRITICAL":  # otherwise the user wants to see it
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
    if not isinstance(threading.excepthook, _QuietThreads):
        threading.excepthook = _QuietThreads(threading.excepthook)


class _QuietThreads:
    """Ignores errors in MLflow's own threads; the call that needs the thread fails too, and that is reported."""

    def __init__(self, otherwise: object) -> None:
        self.otherwise = otherwise

    def __call__(self, raised: threading.ExceptHookArgs) -> None:
        if not _is_foreign(raised.exc_traceback) and callable(self.otherwise):
            self.otherwise(raised)


def _is_foreign(trace: TracebackType | None) -> bool:
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if name.split(".")[0] in _FOREIGN:
            return True
        trace = trace.tb_next
    return False


@contextmanager
def without_stray_folders(uri: str) -> Iterator[None]:
    """MLflow creates the folder of an SQLite URL without decoding it; remove the resulting empty folder."""
    missing: list[Path] = []
    if uri.startswith(SQLITE) and "%" in uri:
        folder = Path(uri.removeprefix(SQLITE)).absolute().parent
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
    try:
        yield
    finally:
        for folder in missing:
            with suppress(OSError):  # it was not created after all, or is not empty
                folder.rmdir()


def sqlite_file(uri: str) -> Path:
    """The file of an SQLite URL as SQLAlchemy parses it: without options after a `?`, the rest decoded."""
    return Path(unquote(uri.removeprefix(SQLITE).partition("?")[0]))


def _make_store(path: Path) -> None:
    """Create a new SQLite store atomically: MLflow rejects a store whose creation was killed halfway.

    Its many small commits wait for the disk each; in memory, where available, they do not.
    """
    from mlflow import MlflowClient

    if path.exists():
        try_database(path)
        return
    memory = Path("/dev/shm")
    with scratch_folder("augbench", memory if os.access(memory, os.W_OK) else None) as folder:
        MlflowClient(tracking_uri=sqlite_url(folder / "mlflow.db")).search_experiments(max_results=1)
        with replacing(path, unless_taken=True) as half:
            shutil.copyfile(folder / "mlflow.db", half)


def try_database(path: Path) -> None:
    """Open a database once: MLflow would retry for over a minute before reporting an error."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=REACH_SECONDS)) as database:
        database.execute("PRAGMA schema_version").fetchone()


def reach(uri: str) -> None:
    """Detect a server that does not respond within seconds, regardless of the client's retries."""
    place = urlsplit(uri)
    port = PORTS.get(place.scheme.split("+")[0])
    if port is not None and place.hostname:
        try:
            socket.create_connection((place.hostname, place.port or port), REACH_SECONDS).close()
        except ValueError as error:  # an invalid port
            raise StoreFailure(first_line(error)) from error
