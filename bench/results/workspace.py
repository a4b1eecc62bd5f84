"""A workspace: the folder with a project's ledger, MLflow store and rendered tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.registry import UserError
from bench.results.ledger import iterate_records
from bench.results.records import Record

ARCHIVE = "trials.parquet"  # of a shared folder


def sqlite_url(path: Path) -> str:
    """The URL of an SQLite file as SQLAlchemy parses it: text after a `?` is options, and `%` is decoded.

    Nothing else is encoded, because MLflow also uses the URL as a literal path.
    """
    return f"sqlite:///{path.resolve().as_posix().replace('%', '%25').replace('?', '%3F')}"


@dataclass(frozen=True)
class Workspace:
    """The paths in a workspace."""

    root: Path

    @property
    def ledger(self) -> Path:
        return self.root / "ledger.jsonl"

    @property
    def tracking_uri(self) -> str:
        """MLflow's embedded store, used if no server is given."""
        return sqlite_url(self.root / "mlflow.db")

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    def prepare(self) -> None:
        """Create the folder, or report why it cannot be written to."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot create the workspace {self.root}: {error.strerror}; choose another --workspace"
            ) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise UserError(f"the workspace {self.root} is not writable; choose another --workspace")

    @property
    def shared(self) -> Path:
        """The trials of a shared folder, which has no ledger."""
        return self.root / ARCHIVE

    def source(self) -> Path:
        """The file to read trials from: its ledger, or the archive of a shared folder."""
        return self.shared if self.shared.is_file() and not self.ledger.is_file() else self.existing().ledger

    def existing(self) -> Workspace:
        """This workspace, if a run has written to it."""
        if not self.ledger.is_file():
            raise UserError(f"there is no ledger in {self.root}; run `bench run` first, or name another --workspace")
        return self


def lines_at(path: Path) -> Iterable[Any]:
    """The raw lines of a workspace, ledger file or archive as JSON, not validated."""
    ledger = Workspace(path).source() if path.is_dir() else path
    if ledger.suffix == ".parquet":
        from bench.results.archive import raw_records

        yield from raw_records(ledger)
        return
    number = 0
    try:
        with ledger.open("rb") as file:
            for line in file:
                number += 1
                if line.endswith(b"\n"):  # otherwise left by a crash, and never counted
                    yield json.loads(line)
    except OSError as error:
        raise UserError(f"cannot read {ledger}: {error.strerror}; check the path") from error
    except ValueError as error:
        raise UserError(f"{ledger} line {number} is not JSON ({error}); restore a copy or delete it") from error


def source_file(path: Path) -> Path:
    """The ledger or archive itself, for a workspace or shared folder given by its path."""
    return Workspace(path).source() if path.is_dir() or not (path.is_file() or path.suffix) else path


def records_at(path: Path, curves: bool = True) -> Iterable[Record]:
    """The records of a workspace, ledger file or published Parquet archive, optionally with curves."""
    path = source_file(path)
    if not path.is_file():
        raise UserError(f"there is no workspace, ledger or archive {path}; check the path")
    if path.suffix != ".parquet":
        return iterate_records(path, curves)
    from bench.results.archive import read_archive

    return read_archive(path)
