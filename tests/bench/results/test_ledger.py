from __future__ import annotations

import gc
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.cells import Cell, Trial
from bench.protocol.training import Training
from bench.registry import Choice, UserError
from bench.results import ledger
from bench.results.ledger import AT_ONCE, Ledger, LedgerState, iterate_records, read_records, read_state


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


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", "3", '{"type": "poem"}', '{"no": "type"}', '{"type": ["cell"]}', "\xff", "[" * 100_000]
)
def test_a_broken_line_inside_is_named_with_its_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(json.dumps(trial()).encode() + b"\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(UserError, match=r"line 2 is not a ledger record \(.{3,}\)") as caught:
        read_records(path)
    assert ("Expecting value" in str(caught.value)) is (line == "nonsense")


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


def test_curves_are_left_out_only_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(trial(curve=[[1, 0.5]], provenance="p"))
    for read in (list(iterate_records(path)), read_records(path), list(read_state(path).trials["c"].values())):
        assert read[0]["curve"] == [[1, 0.5]]
    without = read_state(path, curves=False).trials["c"][Trial(0, 0)]
    assert without == trial(provenance="p")
    assert list(iterate_records(path, curves=False)) == [without]


@pytest.mark.parametrize("broken", [1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE + 7])
@pytest.mark.parametrize("line", [b"nonsense", b'{"type": "poem"}', b'{"type":"plan"}, {"type":"plan"}'])
def test_line_numbers_count_on_through_a_long_file(tmp_path: Path, broken: int, line: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    lines = [json.dumps(trial(fold)).encode() for fold in range(2 * AT_ONCE + 20)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert [record["fold"] for record in read_records(path)] == list(range(len(lines)))
    lines[broken - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(UserError, match=f"line {broken} is not a ledger record"):
        read_records(path)


def test_records_share_what_they_have_in_common(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    cell = {"type": "provenance", "id": "some", "key": "cell number one"}
    with Ledger(path) as ledger:
        ledger.append_all([cell, *(trial(fold, cell=cell["key"], provenance="some machine") for fold in range(2))])
    said, one, again = read_records(path)
    for name in ("cell", "status", "provenance"):
        assert one[name] is again[name]
    assert said["key"] is one["cell"]
    assert all(name is other for name, other in zip(one, again, strict=True)), "the names of fields, too"
    state = LedgerState.of([trial(cell="one"), trial(cell="other")])
    assert next(iter(state.trials["one"])) is next(iter(state.trials["other"])), "one object for the same trial"


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_rests_while_a_ledger_is_read(enabled: bool) -> None:
    def records() -> Any:
        assert not gc.isenabled()
        yield trial()

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        LedgerState.of(records())
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_a_cell_with_a_setting_of_another_version_is_one_clear_line() -> None:
    gcn, mean, none = Choice("gcn", {}, "gcn"), Choice("mean", {}, "mean"), Choice("none", {}, "none")
    known = Cell("digits", "native", "stratified", 10, none, gcn, mean, Training(), {"protocol": 1})
    state = LedgerState()
    cell = known.to_json() | {"type": "cell", "key": "c"}
    state.take(cell)
    assert state.cell("c") == known
    state.take({**cell, "training": {**cell["training"], "warp": 9}})
    with pytest.raises(UserError, match="written by another version"):
        state.cell("c")


def test_every_kind_of_record_has_its_place() -> None:
    failed = trial(1, "failed", reason="diverged")
    origin = {"type": "provenance", "id": "p", "commit": "abc"}
    plan = {"type": "plan", "cells": ["c"], "folds": [0], "repeats": [0]}
    state = LedgerState.of([origin, plan, trial(0), failed])
    assert state.provenance == {"p": origin} and state.plans == [plan]
    assert state.failed("c") == {Trial(1, 0): failed} and state.done("c") == {Trial(0, 0)}
    assert state.failed("unknown") == {} and state.done("unknown") == set()
    assert LedgerState.of([trial(0, "failed", reason="old"), trial(0, "failed", reason="new")]).failed("c") == {
        Trial(0, 0): trial(0, "failed", reason="new")
    }
