"""Quick checks of a tracking store without MLflow, whose import takes longer than many runs.

Nothing relies on these checks alone. If a store cannot be read this way, the result is unknown, and MLflow is asked.
"""

from __future__ import annotations

import os
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing

from bench.tracking.store import REACH_SECONDS, SQLITE, first_line, reach, sqlite_file, try_database
from bench.tracking.store import StoreFailure as Failure

_COMPLETE = """
SELECT cells.value, CASE runs.status WHEN 'FINISHED' THEN coalesce(digests.value, '') ELSE '' END
FROM runs
JOIN experiments USING (experiment_id)
JOIN tags AS cells ON cells.run_uuid = runs.run_uuid AND cells.key = ?
LEFT JOIN tags AS digests ON digests.run_uuid = runs.run_uuid AND digests.key = ?
WHERE experiments.name = ? AND experiments.lifecycle_stage = 'active' AND runs.lifecycle_stage = 'active'
"""


def usable_at_a_glance(uri: str) -> bool:
    """Whether the store is certainly usable; False if only MLflow can tell. Raises `StoreFailure` if it is not."""
    try:
        reach(uri)
        if uri.startswith(SQLITE):
            return _sqlite_usable(uri)
    except Failure:
        raise
    except (sqlite3.Error, OSError) as error:
        raise Failure(first_line(error)) from error
    return uri.startswith(("http://", "https://")) and _answers(uri)


def _sqlite_usable(uri: str) -> bool:
    """An existing MLflow store, or a path where one can be created."""
    path = sqlite_file(uri)
    if not path.exists():
        return path.parent.is_dir() and os.access(path.parent, os.W_OK)
    try_database(path)
    with closing(read_only(uri)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return {"alembic_version", "experiments", "runs", "tags"} <= tables and os.access(path, os.W_OK)


def _answers(uri: str) -> bool:
    """Whether a server responds like MLflow; cases such as a required password are left to MLflow."""
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=REACH_SECONDS) as answer:
            return bool(answer.status == 200 and answer.read(3) == b"OK")
    except (urllib.error.URLError, OSError, ValueError):
        return False


def complete_runs(uri: str, experiment: str, cell_tag: str, digest_tag: str) -> dict[str, list[str]]:
    """By cell: what each of its runs in an experiment shows, "" for a run that was not written completely.

    Read from MLflow's own tables; empty if that is not possible.
    """
    if not uri.startswith(SQLITE) or not sqlite_file(uri).exists():
        return {}
    found: dict[str, list[str]] = {}
    try:
        with closing(read_only(uri)) as database:
            for cell, digest in database.execute(_COMPLETE, (cell_tag, digest_tag, experiment)):
                found.setdefault(cell, []).append(digest)
    except sqlite3.Error:
        return {}
    return found


def read_only(uri: str) -> sqlite3.Connection:
    """The database of an SQLite store, opened read-only."""
    address = f"{sqlite_file(uri).absolute().as_uri()}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=REACH_SECONDS)
