"""The ledger: an append-only JSON Lines file, written by one process and flushed to disk. It is the source of truth.

A trial counts as recorded when its line is on disk. A line without a newline was left by a crash during writing and
never counted: readers skip it, and the next writer removes it.
"""

from __future__ import annotations

import gc
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from bench.plan.cells import Cell, Trial
from bench.registry import UserError
from bench.results.records import CellRecord, Flaw, PlanRecord, ProvenanceRecord, Record, TrialRecord, parse

_CURVE = re.compile(rb',"curve":\[[-+0-9eE.,\[\]]*\]')  # as we write it; in strings, quotes are escaped
AT_ONCE = 500  # lines parsed in one call, which then share the names of their fields: a third less memory


def read_records(path: Path) -> list[Record]:
    """All complete records of a ledger file; none if there is no file yet."""
    with _uncollected():
        return list(iterate_records(path))


def iterate_records(path: Path, curves: bool = True) -> Iterator[Record]:
    """The same, one after another; the curves of trials, half of a ledger's memory, can be left out."""
    try:
        with path.open("rb") as file:
            yield from _parse(file, path, curves)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UserError(
            f"cannot read the ledger {path}: {error.strerror}; check the path and its permissions"
        ) from error


def read_state(path: Path, curves: bool = True) -> LedgerState:
    """The state of a ledger file, for display, without the curves of trials."""
    return LedgerState.of(iterate_records(path, curves))


def _parse(file: BinaryIO, path: Path, curves: bool) -> Iterator[Record]:
    before = 0
    acknowledged = takewhile(lambda line: line.endswith(b"\n"), file)  # a writer may complete a line in the meantime
    while lines := list(islice(acknowledged, AT_ONCE)):
        text = b",".join(lines)
        try:
            found = json.loads(b"[" + (text if curves else _CURVE.sub(b"", text)) + b"]")
        except (ValueError, RecursionError):
            found = []
        if len(found) != len(lines):  # one of them is invalid: parse them individually to find it
            found = [_loaded(line, path, number) for number, line in enumerate(lines, before + 1)]
        for number, raw in enumerate(found, before + 1):
            if not curves and isinstance(raw, dict):
                raw.pop("curve", None)
            try:
                yield parse(raw)
            except Flaw as error:
                raise _no_record(path, number, str(error)) from error
        before += len(lines)


def _loaded(line: bytes, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _no_record(path, number, str(error)) from error


def _no_record(path: Path, number: int, reason: str) -> UserError:
    return UserError(f"{path} line {number} is not a ledger record ({reason}); restore a copy or delete that line")


@contextmanager
def _uncollected() -> Iterator[None]:
    """Records have no reference cycles; searching millions of them for cycles takes longer than reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@lru_cache(maxsize=4096)
def _trial(fold: int, repeat: int) -> Trial:
    """One shared object for the same trial of every cell."""
    return Trial(fold, repeat)


@dataclass
class LedgerState:
    """The content of a ledger by key: the cells, the newest record of each trial, the plans."""

    cells: dict[str, Cell] = field(default_factory=dict)
    trials: dict[str, dict[Trial, TrialRecord]] = field(default_factory=dict)
    plans: list[PlanRecord] = field(default_factory=list)
    provenance: dict[str, ProvenanceRecord] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> LedgerState:
        state = cls()
        with _uncollected():
            for record in records:
                state.take(record)
        return state

    def take(self, record: Record) -> None:
        """Add a record; a later failure never replaces a finished trial."""
        if isinstance(record, TrialRecord):
            trials = self.trials.setdefault(record.cell, {})
            trial = _trial(record.fold, record.repeat)
            if record.done or trial not in trials or not trials[trial].done:
                trials[trial] = record
        elif isinstance(record, CellRecord):
            self.cells[record.key] = record.cell
        elif isinstance(record, PlanRecord):
            self.plans.append(record)
        else:
            self.provenance[record.id] = record

    def only(self, keys: Collection[str]) -> LedgerState:
        """The state of some cells."""
        plans = [replace(plan, cells=tuple(key for key in plan.cells if key in keys)) for plan in self.plans]
        return LedgerState(
            {key: cell for key, cell in self.cells.items() if key in keys},
            {key: trials for key, trials in self.trials.items() if key in keys},
            [plan for plan in plans if plan.cells],
            self.provenance,
        )

    def records(self) -> Iterator[Record]:
        """Everything as records, in the order of a ledger."""
        yield from self.provenance.values()
        yield from (CellRecord(key, cell) for key, cell in self.cells.items())
        yield from self.plans
        for trials in self.trials.values():
            yield from trials.values()

    def done(self, key: str) -> set[Trial]:
        return {trial for trial, record in self.trials.get(key, {}).items() if record.done}

    def failed(self, key: str) -> dict[Trial, TrialRecord]:
        return {trial: record for trial, record in self.trials.get(key, {}).items() if not record.done}

    def finished(self) -> Iterator[tuple[Cell, TrialRecord]]:
        """All finished trials with their cells."""
        for key, cell in self.cells.items():
            yield from ((cell, record) for record in self.trials.get(key, {}).values() if record.done)

    def failures(self, cells: Iterable[Cell], trials: Iterable[Trial]) -> list[tuple[Cell, TrialRecord]]:
        """Of these trials of these cells, those that were tried and have no result."""
        wanted = set(trials)
        return [
            (cell, record)
            for cell in cells
            for trial, record in sorted(self.failed(cell.key).items())
            if trial in wanted
        ]

    def find(self, prefix: str) -> str:
        """The one key that starts with this prefix."""
        found = [key for key in self.cells if key.startswith(prefix)]
        if not found:
            raise UserError(f"no cell of the ledger has a key that starts with '{prefix}'; `bench status` lists them")
        if len(found) > 1:
            raise UserError(
                f"'{prefix}' matches {len(found)} cells: {', '.join(sorted(found)[:5])}; give more of the key"
            )
        return found[0]

    def undescribed(self) -> list[str]:
        """Keys of trials whose cell no line describes, as in a ledger that was cut or merged by hand."""
        return sorted(set(self.trials) - set(self.cells))

    def planned(self) -> dict[str, set[Trial]]:
        """The trials of each cell that any plan contained."""
        wanted: dict[str, set[Trial]] = {}
        for plan in self.plans:
            trials = {_trial(fold, repeat) for fold in plan.folds for repeat in plan.repeats}
            for key in plan.cells:
                wanted.setdefault(key, set()).update(trials)
        return wanted


class Ledger:
    """The ledger, opened for writing: by one process at a time; each record is on disk before `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = LedgerState()
        self.cut = 0  # bytes of an incomplete line left by a crash
        self._lock = FileLock(path.with_suffix(".lock"), timeout=0)
        self._file = -1
        self._whole: int | None = None  # the end of the last complete line, while another one is being written

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
        self.state = read_state(self.path)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            size = os.fstat(self._file).st_size
            whole = _last_newline(self._file, size)
            if whole < size:
                self.cut = size - whole
                os.ftruncate(self._file, whole)
            elif not size:
                _keep_name(self.path.parent)
        except OSError as error:
            if self._file >= 0:
                os.close(self._file)
            raise UserError(
                f"cannot write {self.path}: {error.strerror}; choose a --workspace you may write to"
            ) from error

    def append(self, record: Record) -> None:
        """Write one record to disk; if that fails, the file is left as it was."""
        self.append_all([record])

    def append_all(self, records: Sequence[Record]) -> None:
        """Write some records to disk at once; a record that a reader would reject is rejected here."""
        lines = [_line(record) for record in records]
        written = [parse(json.loads(line)) for line in lines]  # what a reader will make of them
        try:
            self._cut_back()
            self._whole = os.fstat(self._file).st_size
            rest = memoryview(b"".join(lines))
            while rest:
                rest = rest[os.write(self._file, rest) :]
            os.fsync(self._file)
            self._whole = None
        except OSError as error:
            with suppress(OSError):  # a full disk may reject this too; then the next writer does it
                self._cut_back()
            raise UserError(
                f"cannot write to {self.path}: {error.strerror}; "
                "all trials before this one are kept; free some space and run the same command again"
            ) from error
        for record in written:
            self.state.take(record)

    def _cut_back(self) -> None:
        """Remove what a failed write has left, so that nothing is ever written after half a line."""
        if self._whole is not None:
            os.ftruncate(self._file, self._whole)
            self._whole = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        self._lock.release()


def _line(record: Record) -> bytes:
    try:
        return json.dumps(record.to_json(), separators=(",", ":")).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise Flaw(f"it cannot be written as JSON: {error}") from error


def _keep_name(folder: Path) -> None:
    """Sync the folder of a new file: after a power failure, a file without its directory entry would be lost."""
    with suppress(OSError):  # not every system or file system supports this, and those that do not, do not need it
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _last_newline(file: int, size: int) -> int:
    """The end of the last complete line."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
