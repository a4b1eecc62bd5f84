from __future__ import annotations

import io
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import ledger
from bench.cells import Trial
from bench.ledger import Ledger, LedgerState, read_records
from bench.registry import UserError


def trial(fold: int = 0, status: str = "done", cell: str = "c", **more: Any) -> dict[str, Any]:
    return {"type": "trial", "cell": cell, "fold": fold, "repeat": 0, "status": status, "accuracy": 0.5, **more}


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        for fold in range(5):
            ledger.append(trial(fold))
    with Ledger(path) as ledger:
        ledger.append(trial(5))
        assert ledger.state.done("c") == {Trial(fold, 0) for fold in range(6)}
    assert [record["fold"] for record in read_records(path)] == list(range(6))


def test_no_file_is_an_empty_ledger(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none.jsonl") == []


@given(cut=st.integers(min_value=0, max_value=400))
def test_a_file_cut_anywhere_keeps_every_whole_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "ledger.jsonl"
    lines = [json.dumps(trial(fold)).encode() + b"\n" for fold in range(4)]
    path.write_bytes(b"".join(lines)[:cut])
    whole = sum(cut >= len(b"".join(lines[: n + 1])) for n in range(4))
    assert len(read_records(path)) == whole
    with Ledger(path) as ledger:
        assert len(ledger.state.done("c")) == whole
        ledger.append(trial(9))
    assert [record["fold"] for record in read_records(path)] == [*range(whole), 9]


def test_a_long_unfinished_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(json.dumps(trial()).encode() + b"\n" + b"x" * 200_000)
    with Ledger(path) as ledger:
        assert ledger.cut == 200_000
    assert len(read_records(path)) == 1


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "3", '{"type": "poem"}', '{"no": "type"}', '{"type": ["cell"]}', "\xff", "[" * 100_000]
)
def test_a_broken_line_inside_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(json.dumps(trial()).encode() + b"\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(UserError, match="line 2 is not a ledger record"):
        read_records(path)


def test_a_retry_replaces_a_failure_but_a_failure_never_replaces_a_result() -> None:
    state = LedgerState.of([trial(0, "failed"), trial(0, "done"), trial(1, "done", accuracy=0.5), trial(1, "failed")])
    assert state.done("c") == {Trial(0, 0), Trial(1, 0)}
    assert state.trials["c"][Trial(1, 0)]["accuracy"] == 0.5
    assert not state.failed("c")


def test_planned_trials_are_the_union_of_all_plans() -> None:
    plans = [
        {"type": "plan", "cells": ["a"], "folds": [0], "repeats": [0, 1]},
        {"type": "plan", "cells": ["a", "b"], "folds": [0, 1], "repeats": [0]},
    ]
    assert LedgerState.of(plans).planned() == {
        "a": {Trial(0, 0), Trial(0, 1), Trial(1, 0)},
        "b": {Trial(0, 0), Trial(1, 0)},
    }


def test_values_that_json_cannot_hold_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger, pytest.raises(ValueError, match="not JSON compliant"):
        ledger.append(trial(accuracy=float("nan")))
    assert read_records(path) == []


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
        with pytest.raises(UserError, match="another process is writing"), Ledger(path):
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
        assert len(read_records(path)) == kept
        ledger.append(trial(kept))  # room again: the same ledger goes on
    assert [record["fold"] for record in read_records(path)] == list(range(kept + 1))


def test_a_folder_in_the_ledgers_place_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read the ledger"):
        read_records(tmp_path)


def test_a_line_that_is_completed_while_it_is_read_is_left_for_the_next_reader(tmp_path: Path) -> None:
    class Growing(io.BytesIO):
        """A file to whose half line a writer adds the rest as soon as its end was reached."""

        def __next__(self) -> bytes:
            try:
                return super().__next__()
            except StopIteration:
                place = self.tell()
                self.write(b'"}\n')
                self.seek(place)
                raise

    whole = json.dumps({"type": "provenance", "id": "a"}).encode() + b"\n"
    found = ledger._parse(Growing(whole + b'{"type": "provenance", "id": "b'), tmp_path, curves=True)
    assert [record["id"] for record in found] == ["a"]
