"""The storage of studies: any database that Optuna supports, opened quietly, with a lock that its users share.

Optuna alone cannot make several processes respect a budget: counting the trials and starting one are two steps. Both
are done under this lock, which is released when its process dies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from filelock import FileLock, Timeout
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy.engine import URL

from bench.registry import UserError
from bench.results.workspace import Workspace, sqlite_url

optuna.logging.set_verbosity(optuna.logging.ERROR)  # progress is shown by our own view

LOCK_SECONDS = 120.0  # far longer than it is ever held
BUSY_SECONDS = 60.0  # how long SQLite waits for another writer
CONNECT_SECONDS = 10


def default_url(workspace: Workspace) -> str:
    """SQLite in the workspace."""
    return sqlite_url(workspace.root / "tuning.db")


class Storage:
    """An opened storage."""

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        self.dialect = parsed.get_backend_name()
        self.name = parsed.render_as_string(hide_password=True)
        self._file = Path(parsed.database or "") if self.dialect == "sqlite" else None
        if self._file is not None and not self._file.absolute().parent.is_dir():
            folder = self._file.absolute().parent
            raise UserError(
                f"--storage {url} cannot be opened: the folder {folder} does not exist; create it, or name another"
            )
        settings = {"connect_args": _connect_arguments(self.dialect), "pool_pre_ping": True}
        with _told(self.name):
            self.engine = sqlalchemy.create_engine(url, **settings)
            with self.lock("opening"):  # Optuna's creation of tables is not safe for two processes at once
                backend = RDBStorage(url, engine_kwargs=settings)
                if self._file is not None:
                    _hasten(backend.engine)
        # One cached view for all studies of this process; the database is the source of truth.
        self.optuna = optuna.storages.get_storage(backend)

    def names(self) -> list[str]:
        """The names of all studies."""
        return sorted(optuna.get_all_study_names(self.optuna))

    def study(self, name: str) -> optuna.Study:
        """An existing study."""
        return optuna.load_study(study_name=name, storage=self.optuna)

    def new_study(self, name: str) -> optuna.Study:
        """A study, created if it does not exist."""
        return optuna.create_study(study_name=name, storage=self.optuna, direction="maximize", load_if_exists=True)

    def settle(self) -> None:
        """Sync written data to disk; servers do so themselves."""
        if self._file is not None:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def lock(self, purpose: str) -> Iterator[None]:
        """Lock a purpose against all other processes that use this storage."""
        if self._file is not None:
            yield from self._file_lock(self._file, purpose)
        elif self.dialect == "postgresql":
            key = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "big", signed=True)
            yield from self._server_lock("SELECT pg_advisory_lock(:key)", "SELECT pg_advisory_unlock(:key)", key)
        else:
            name = f"augbench {purpose}"
            yield from self._server_lock("SELECT GET_LOCK(:key, -1)", "SELECT RELEASE_LOCK(:key)", name)

    def _file_lock(self, database: Path, purpose: str) -> Iterator[None]:
        path = database.with_name(f"{database.name}.{purpose}.lock")
        try:
            with FileLock(path, timeout=LOCK_SECONDS):
                yield
        except Timeout:
            raise UserError(
                f"another process has locked {path} for over {LOCK_SECONDS:.0f} s; stop it, or choose another --storage"
            ) from None

    def _server_lock(self, take: str, give: str, key: Any) -> Iterator[None]:
        try:
            with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(sqlalchemy.text(take), {"key": key})
                try:
                    yield
                finally:
                    connection.execute(sqlalchemy.text(give), {"key": key})
        except sqlalchemy.exc.DBAPIError as error:  # raised by Optuna itself when the server is gone
            raise StorageInternalError("the lock cannot be acquired, or its connection broke") from error


def existing_storage(url: str | None, workspace: Workspace) -> Storage:
    """The storage at this URL, or the workspace's own, if it exists; nothing is created."""
    chosen = url or default_url(workspace)
    parsed = _parsed(chosen)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").is_file():
        raise UserError(f"there are no studies at {chosen}; run bench tune first, or name another --storage")
    return Storage(chosen)


def _parsed(url: str) -> URL:
    try:
        parsed = sqlalchemy.engine.make_url(url)
        dialect = parsed.get_backend_name()
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        raise UserError(
            f"--storage {url} is not a storage URL; write sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
        ) from error
    if dialect not in ("sqlite", "postgresql", "mysql", "mariadb"):
        raise UserError(f"--storage {url}: Optuna keeps studies in SQLite, PostgreSQL or MySQL, not in {dialect}")
    if dialect == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise UserError(f"--storage {url} keeps nothing; give a file, such as sqlite:///tuning.db")
    return parsed


def _connect_arguments(dialect: str) -> dict[str, Any]:
    return {"timeout": BUSY_SECONDS} if dialect == "sqlite" else {"connect_timeout": CONNECT_SECONDS}


def _hasten(engine: sqlalchemy.Engine) -> None:
    """Let SQLite use write-ahead logging without waiting for the disk: Optuna commits about thirty times per trial.

    A killed process loses nothing; `settle` protects finished trials from power failures.
    """

    @sqlalchemy.event.listens_for(engine, "connect")
    def not_each_time(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous=NORMAL")

    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")  # stored in the file
    engine.dispose()


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Report errors related to the URL in one line."""
    try:
        yield
    except (ImportError, sqlalchemy.exc.NoSuchModuleError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise UserError(
            f"--storage {name} needs a driver that is not installed ({reason}); for PostgreSQL: "
            "pip install 'psycopg[binary]' and write postgresql+psycopg://..."
        ) from error
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.OptunaError, OSError, RuntimeError, KeyError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise UserError(
            f"--storage {name} cannot be opened: {reason}; check the address, or leave --storage out for SQLite"
        ) from error
