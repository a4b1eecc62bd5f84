from __future__ import annotations

import json
import multiprocessing
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from bench.plan.cells import Trial
from bench.registry import UserError
from bench.results.ledger import Ledger, read_records
from bench.results.records import Flaw, TrialRecord


def trial(fold: int = 0, **more: Any) -> TrialRecord:
    return TrialRecord("c", fold, 0, "done", **{"accuracy": 0.5, **more})


def folds(path: Path) -> list[int]:
    return [record.fold for record in read_records(path) if isinstance(record, TrialRecord)]


def line(record: TrialRecord) -> bytes:
    return json.dumps(record.to_json(), separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": float("nan")}, "its accuracy is nan"),
        ({"accuracy": None}, "its accuracy is None"),
        ({"loss": float("inf")}, "its loss is inf"),
        ({"fold": -1}, "its fold is -1"),
        ({"seconds": {"train": -1.0}}, "its seconds is {'train': -1.0}"),
        ({"curve": [[1, float("nan")]]}, "its curve is"),
        ({"generated": {"count": object()}}, "cannot be written as JSON: Object of type object"),
    ],
)
def test_what_a_reader_would_refuse_is_not_written(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(trial())
        before = path.read_bytes()
        for records in ([replace(trial(1), **change)], [trial(1), replace(trial(2), **change)]):
            with pytest.raises(Flaw, match=re.escape(message)):
                ledger.append_all(records)
        assert path.read_bytes() == before and ledger.state.done("c") == {Trial(0, 0)}
        ledger.append(trial(1))
    assert folds(path) == [0, 1]


def test_the_state_holds_what_a_reader_will_find(tmp_path: Path) -> None:
    """Numbers of NumPy and class numbers as names are what they are in JSON."""
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(trial(accuracy=np.float64(0.25), predicted={0: 0.75, 1: 0.25}))
        found = list(ledger.state.records())
    assert found == read_records(path) == [trial(accuracy=0.25, predicted={"0": 0.75, "1": 0.25})]
    assert type(found[0].to_json()["accuracy"]) is float


def hold(path: str, ready: Any, leave: Any) -> None:
    with Ledger(Path(path)):
        ready.set()
        leave.wait(30)


def test_a_second_writer_is_told_to_wait(tmp_path: Path) -> None:
    path, context = tmp_path / "ledger.jsonl", multiprocessing.get_context("fork")
    ready, leave = context.Event(), context.Event()
    holder = context.Process(target=hold, args=(str(path), ready, leave))
    holder.start()
    try:
        assert ready.wait(30)
        second = Ledger(path)
        assert second._lock.timeout == 0 and (tmp_path / "ledger.lock").exists()
        with pytest.raises(UserError, match="another process is writing"), second:
            pass
        assert read_records(path) == []  # reading needs no lock
    finally:
        leave.set()
        holder.join(30)
    with Ledger(path) as ledger:
        ledger.append(trial())


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"
    real_write = os.write
    room = 300

    def write(file: int, data: Any) -> int:
        nonlocal room
        if room <= 0:
            raise OSError(28, "No space left on device")
        written = real_write(file, bytes(data)[:room])
        room -= written
        return written

    with Ledger(path) as ledger:
        monkeypatch.setattr(os, "write", write)
        kept = 0
        with pytest.raises(UserError, match="No space left"):
            for fold in range(100):
                ledger.append(trial(fold))
                kept += 1
        monkeypatch.undo()
        assert kept > 0
        assert path.read_bytes().endswith(b"}\n"), "half a line is taken back at once"
        assert len(read_records(path)) == kept
        ledger.append(trial(kept))  # room again: the same ledger goes on
    assert folds(path) == list(range(kept + 1))


def test_a_record_is_one_compact_line_that_later_changes_do_not_touch(tmp_path: Path) -> None:
    path, record, umask = tmp_path / "ledger.jsonl", trial(), os.umask(0)
    try:
        with Ledger(path) as ledger:
            ledger.append(record)
            record.accuracy = 0.9
            record.seconds["train"] = 1.0
            assert ledger.state.trials["c"][Trial(0, 0)] == trial()
    finally:
        os.umask(umask)
    assert path.read_bytes() == line(trial())
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_line_is_on_disk_before_append_returns_and_so_is_the_name_of_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "ledger.jsonl", os.fsync
    flushed: list[tuple[int, int]] = []

    def fsync(file: int) -> None:
        flushed.append((os.fstat(file).st_ino, os.fstat(file).st_size))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    descriptors = psutil.Process().num_fds()
    with Ledger(path) as ledger:
        assert [inode for inode, _ in flushed] == [tmp_path.stat().st_ino]
        ledger.append(trial())
        assert flushed[1:] == [(path.stat().st_ino, path.stat().st_size)]
    assert psutil.Process().num_fds() == descriptors, "nothing stays open"
    with Ledger(path):
        assert len(flushed) == 2, "the name of a file that was there is on disk already"


def test_a_folder_that_cannot_be_flushed_does_not_stop_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        monkeypatch.undo()
        ledger.append(trial())
    assert len(read_records(tmp_path / "ledger.jsonl")) == 1


def test_a_lock_that_cannot_be_had_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot lock"), Ledger(tmp_path / "file" / "ledger.jsonl"):
        pass


def test_a_ledger_that_does_not_open_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"

    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    descriptors = psutil.Process().num_fds()
    for name in ("open", "fstat"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            patch.setattr("bench.results.ledger.FileLock", Unlocked)  # which calls them too
            with pytest.raises(UserError, match=r"cannot write .*: Read-only file system"), Ledger(path):
                pass
    assert Unlocked.held == 0 and psutil.Process().num_fds() == descriptors
    path.write_text("nonsense\n")
    with pytest.raises(UserError, match="line 1"), Ledger(path):
        pass
    path.unlink()
    with Ledger(path) as ledger:  # the lock was released each time
        ledger.append(trial())


class Unlocked:
    """Counts who holds it."""

    held = 0

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def acquire(self) -> None:
        Unlocked.held += 1

    def release(self) -> None:
        Unlocked.held -= 1


def test_half_a_line_that_could_not_be_taken_back_is_taken_back_by_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "ledger.jsonl", os.write

    def refuse(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    def half(file: int, data: Any) -> int:
        real(file, bytes(data)[:7])
        raise OSError(5, "Input/output error")

    with Ledger(path) as ledger:
        ledger.append(trial(0))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", half)
            patch.setattr(os, "ftruncate", refuse)
            with pytest.raises(UserError, match=r"Input/output error.*kept"):
                ledger.append(trial(1))
        assert ledger.state.done("c") == {Trial(0, 0)}
        ledger.append(trial(2))
    assert folds(path) == [0, 2]


@pytest.mark.parametrize("behind", [1, 65535, 65536, 65537, 131072])
@pytest.mark.parametrize("lines", [0, 1])
def test_an_unfinished_line_of_any_length_is_cut_to_the_last_whole_one(tmp_path: Path, behind: int, lines: int) -> None:
    path, whole = tmp_path / "ledger.jsonl", line(trial()) * lines
    path.write_bytes(whole + b"x" * behind)
    with Ledger(path) as ledger:
        assert ledger.cut == behind
    assert path.read_bytes() == whole
    with Ledger(path) as ledger:
        assert ledger.cut == 0
