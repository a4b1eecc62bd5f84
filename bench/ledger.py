"""The ledger: an append-only JSON-lines file, written by one process, flushed to disk. It is the truth.

A trial is acknowledged when its line is on disk. A line without its newline was never acknowledged: it is left
by a crash in the middle of a write, readers pass over it and the next writer cuts it off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from bench.cells import Cell, Trial
from bench.registry import UserError

Record = dict[str, Any]
TYPES = ("cell", "trial", "plan", "provenance")


def read_records(path: Path) -> list[Record]:
    """Every acknowledged record of a ledger file; none when there is no file yet."""
    try:
        with path.open("rb") as file:
            return list(_parse(file, path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(
            f"cannot read the ledger {path}: {error.strerror}; check the path and its permissions"
        ) from error


def _parse(lines: Iterable[bytes], path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.endswith(b"\n"):
            return
        try:
            record = json.loads(line)
            if record["type"] not in TYPES:
                raise ValueError(f"its type is {record['type']!r}")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise UserError(
                f"{path} line {number} is not a ledger record ({error}); restore a copy or delete that line"
            ) from error
        yield record


@dataclass
class LedgerState:
    """What a ledger says, by key: the cells, the newest record of each trial, the plans."""

    cells: dict[str, Record] = field(default_factory=dict)
    trials: dict[str, dict[Trial, Record]] = field(default_factory=dict)
    plans: list[Record] = field(default_factory=list)
    provenance: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> LedgerState:
        state = cls()
        for record in records:
            state.take(record)
        return state

    def take(self, record: Record) -> None:
        """Account for one more record; a finished trial is never replaced by a later failure."""
        kind = record["type"]
        if kind == "cell":
            self.cells[record["key"]] = record
        elif kind == "trial":
            trials = self.trials.setdefault(record["cell"], {})
            trial = Trial(record["fold"], record["repeat"])
            if record["status"] == "done" or trials.get(trial, record)["status"] != "done":
                trials[trial] = record
        elif kind == "plan":
            self.plans.append(record)
        else:
            self.provenance[record["id"]] = record

    def done(self, key: str) -> set[Trial]:
        return {trial for trial, record in self.trials.get(key, {}).items() if record["status"] == "done"}

    def failed(self, key: str) -> dict[Trial, Record]:
        return {trial: record for trial, record in self.trials.get(key, {}).items() if record["status"] != "done"}

    def cell(self, key: str) -> Cell:
        return Cell.from_json(self.cells[key])

    def planned(self) -> dict[str, set[Trial]]:
        """The trials that any plan asked of each cell."""
        wanted: dict[str, set[Trial]] = {}
        for plan in self.plans:
            trials = {Trial(fold, repeat) for fold in plan["folds"] for repeat in plan["repeats"]}
            for key in plan["cells"]:
                wanted.setdefault(key, set()).update(trials)
        return wanted


class Ledger:
    """The ledger opened for writing: one process at a time, each record on disk before `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = LedgerState()
        self.cut = 0  # bytes of an unfinished line that a crash had left
        self._lock = FileLock(path.with_suffix(".lock"), timeout=0)
        self._file = -1

    def __enter__(self) -> Ledger:
        try:
            self._lock.acquire()
        except Timeout:
            raise UserError(
                f"another process is writing to {self.path}; wait for it to end, or choose another --workspace"
            ) from None
        except OSError as error:
            raise UserError(
                f"cannot lock {self.path}: {error.strerror}; choose a --workspace you may write to"
            ) from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def _open(self) -> None:
        self.state = LedgerState.of(read_records(self.path))
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; choose a --workspace you may write to"
            ) from error
        size = os.fstat(self._file).st_size
        whole = _last_newline(self._file, size)
        if whole < size:
            self.cut = size - whole
            os.ftruncate(self._file, whole)

    def append(self, record: Mapping[str, Any]) -> None:
        """Put one record on disk; a write that fails leaves the file as it was."""
        self.append_all([record])

    def append_all(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Put some records on disk at once."""
        lines = [json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n" for record in records]
        before = os.fstat(self._file).st_size
        try:
            rest = memoryview(b"".join(lines))
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, before)
            raise UserError(
                f"cannot write to {self.path}: {error.strerror}; "
                "every trial before this one is kept, make room and run the same command again"
            ) from error
        for record in records:
            self.state.take(dict(record))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        self._lock.release()


def _last_newline(file: int, size: int) -> int:
    """Where the last whole line ends."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
