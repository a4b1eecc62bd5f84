"""Opening an MLflow tracking store: quietly, within seconds, and with one line when it cannot be used."""

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
# Set before MLflow is imported: it reports nothing home, writes no log to the terminal, and a server that is down is
# noticed in seconds, not minutes. What goes wrong is told by us, in one line.
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
# MLflow's own loggers, and those of the libraries under it, which log a traceback and raise the error as well.
LOGGERS = ("mlflow", "alembic", "sqlalchemy", "urllib3", "huey", "git")
_FOREIGN = ("mlflow", "alembic", "sqlalchemy", "urllib3", "requests")

for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)


class StoreFailure(OSError):
    """The store did not do what was asked; the reason is one line."""


@contextmanager
def told_by_the_store() -> Iterator[None]:
    """Whatever MLflow and the database under it raise, as one kind of error with a reason of one line."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except StoreFailure:
        raise
    except (MlflowException, SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise StoreFailure(first_line(error)) from error


def first_line(error: BaseException) -> str:
    """What an error says first; MLflow's may go on for pages."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def open_store(uri: str) -> MlflowClient:
    """A client of the store at an address, made if it is an SQLite file that is not there; `StoreFailure` otherwise."""
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
    """Keep MLflow from writing to the terminal: its log, that of its libraries, and what its threads raise."""
    if os.environ.get("MLFLOW_LOGGING_LEVEL", "CRITICAL").upper() == "CRITICAL":  # else somebody wants to see it
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
    if not isinstance(threading.excepthook, _QuietThreads):
        threading.excepthook = _QuietThreads(threading.excepthook)


class _QuietThreads:
    """Passes over what MLflow's own threads raise; the call that needed them fails too, and that is told."""

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
    """MLflow makes the folder of an SQLite address without decoding it: an empty one beside the one that is meant."""
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
            with suppress(OSError):  # it was not made after all, or somebody has put something there
                folder.rmdir()


def sqlite_file(uri: str) -> Path:
    """The file of an SQLite address, as SQLAlchemy finds it: options behind a `?` left out, the rest decoded."""
    return Path(unquote(uri.removeprefix(SQLITE).partition("?")[0]))


def _make_store(path: Path) -> None:
    """A new SQLite store in one step: a kill while MLflow makes its tables would leave one that it then refuses.

    Its many small commits wait for the disk each; in memory, where there is such a place, they need not.
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
    """Open a database once: MLflow would try for over a minute before it says that it cannot."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=REACH_SECONDS)) as database:
        database.execute("PRAGMA schema_version").fetchone()


def reach(uri: str) -> None:
    """A server that does not answer is known in seconds, whatever the retries of the client."""
    place = urlsplit(uri)
    port = PORTS.get(place.scheme.split("+")[0])
    if port is not None and place.hostname:
        try:
            socket.create_connection((place.hostname, place.port or port), REACH_SECONDS).close()
        except ValueError as error:  # a port that is no number
            raise StoreFailure(first_line(error)) from error
