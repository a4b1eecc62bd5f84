from __future__ import annotations

import gc
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plan.cells import Trial
from bench.registry import UserError
from bench.results import ledger
from bench.results.ledger import AT_ONCE, Ledger, LedgerState, iterate_records, read_records, read_state
from bench.results.records import PlanRecord, ProvenanceRecord, Record, Status, TrialRecord


def trial(fold: int = 0, status: Status = "done", cell: str = "c", **more: Any) -> TrialRecord:
    return TrialRecord(cell, fold, 0, status, **{"accuracy": 0.5, **more})


def folds(path: Path) -> list[int]:
    return [record.fold for record in read_records(path) if isinstance(record, TrialRecord)]


def line(record: Record) -> bytes:
    return json.dumps(record.to_json()).encode()


def test_what_is_appended_is_read_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        for fold in range(5):
            ledger.append(trial(fold))
    with Ledger(path) as ledger:
        ledger.append(trial(5))
        assert ledger.state.done("c") == {Trial(fold, 0) for fold in range(6)}
    assert folds(path) == list(range(6))


def test_no_file_is_an_empty_ledger(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none.jsonl") == []


class Growing(io.RawIOBase):
    """A file to which another process adds a piece whenever its reader has come to the end."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.pieces.pop(0) if self.pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)


def test_a_reader_ends_before_a_line_that_is_being_written() -> None:
    first, second = (line(trial(fold)) + b"\n" for fold in range(2))
    file = io.BufferedReader(Growing([first + second[:9], b"", second[9:], b""]))
    assert [record.fold for record in ledger._parse(file, Path("ledger.jsonl"), True)] == [0]


@given(cut=st.integers(min_value=0, max_value=400))
def test_a_file_cut_anywhere_keeps_every_whole_line(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "ledger.jsonl"
    lines = [line(trial(fold)) + b"\n" for fold in range(4)]
    path.write_bytes(b"".join(lines)[:cut])
    whole = sum(cut >= len(b"".join(lines[: n + 1])) for n in range(4))
    assert len(read_records(path)) == whole
    with Ledger(path) as ledger:
        assert len(ledger.state.done("c")) == whole
        ledger.append(trial(9))
    assert folds(path) == [*range(whole), 9]


@pytest.mark.parametrize(
    "wrong", ["nonsense", "[]", "3", '{"type": "poem"}', '{"no": "type"}', '{"type": ["cell"]}', "\xff", "[" * 100_000]
)
def test_a_broken_line_inside_is_named_with_its_number(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line(trial()) + b"\n" + wrong.encode("latin-1") + b"\n")
    with pytest.raises(UserError, match=r"line 2 is not a ledger record \(.{3,}\)") as caught:
        read_records(path)
    assert ("Expecting value" in str(caught.value)) is (wrong == "nonsense")


def test_a_retry_replaces_a_failure_but_a_failure_never_replaces_a_result() -> None:
    state = LedgerState.of([trial(0, "failed"), trial(0, "done"), trial(1, "done", accuracy=0.5), trial(1, "failed")])
    assert state.done("c") == {Trial(0, 0), Trial(1, 0)}
    assert state.trials["c"][Trial(1, 0)].accuracy == 0.5
    assert not state.failed("c")


def test_planned_trials_are_the_union_of_all_plans() -> None:
    plans = [PlanRecord("g", ("a",), (0,), (0, 1)), PlanRecord("g", ("a", "b"), (0, 1), (0,))]
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

    whole = line(ProvenanceRecord("a", {})) + b"\n"
    found = ledger._parse(Growing(whole + b'{"type": "provenance", "id": "b'), tmp_path, curves=True)
    assert list(found) == [ProvenanceRecord("a", {})]


def test_curves_are_left_out_only_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    told = 'it said ,"curve":[[1,2]] and ended'
    records = [trial(fold, curve=[[1, 0.5], [800, 1e-07]], provenance="p", reason=told) for fold in range(2)]
    with Ledger(path) as ledger:
        ledger.append_all(records)
    with path.open("ab") as file:  # as another program may write it: other spaces, another order
        raw = records[0].to_json()
        file.write(json.dumps({"curve": raw.pop("curve"), **raw, "fold": 2}).encode() + b"\n")
    for read in (list(iterate_records(path)), read_records(path), list(read_state(path).trials["c"].values())):
        assert [record.curve for record in read if isinstance(record, TrialRecord)] == [records[0].curve] * 3
    without = [trial(fold, provenance="p", reason=told) for fold in range(3)]
    assert list(read_state(path, curves=False).trials["c"].values()) == without
    assert list(iterate_records(path, curves=False)) == without


@pytest.mark.parametrize("broken", [1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE + 7])
@pytest.mark.parametrize("wrong", [b"nonsense", b'{"type": "poem"}', b'{"type":"plan"}, {"type":"plan"}'])
def test_line_numbers_count_on_through_a_long_file(tmp_path: Path, broken: int, wrong: bytes) -> None:
    path = tmp_path / "ledger.jsonl"
    lines = [line(trial(fold)) for fold in range(2 * AT_ONCE + 20)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert folds(path) == list(range(len(lines)))
    lines[broken - 1] = wrong
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(UserError, match=f"line {broken} is not a ledger record"):
        read_records(path)


def test_records_share_what_they_have_in_common(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    shared = {"provenance": "some machine", "engine": "fast/cpu"}
    with Ledger(path) as ledger:
        ledger.append_all([trial(fold, cell="cell number one", seconds={"train": 1.5}, **shared) for fold in range(2)])
    one, again = read_records(path)
    for name in ("cell", "status", "provenance", "engine"):
        assert getattr(one, name) is getattr(again, name)
    assert isinstance(one, TrialRecord) and isinstance(again, TrialRecord)
    assert next(iter(one.seconds)) is next(iter(again.seconds)), "the names of figures, too"
    assert not hasattr(one, "__dict__"), "and fields have no names of their own"
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


def test_every_kind_of_record_has_its_place(fake: ModuleType) -> None:
    failed = trial(1, "failed", reason="diverged")
    origin, plan, cell = ProvenanceRecord("p", {"commit": "abc"}), PlanRecord("g", ("c",), (0,), (0,)), fake.cell()
    records = [origin, cell, plan, trial(0), failed]
    state = LedgerState.of(records)
    assert state.provenance == {"p": origin} and state.plans == [plan] and state.cells == {cell.key: cell.cell}
    assert list(state.records()) == records
    assert state.failed("c") == {Trial(1, 0): failed} and state.done("c") == {Trial(0, 0)}
    assert state.failed("unknown") == {} and state.done("unknown") == set()
    assert LedgerState.of([trial(0, "failed", reason="old"), trial(0, "failed", reason="new")]).failed("c") == {
        Trial(0, 0): trial(0, "failed", reason="new")
    }


def test_finished_trials_come_with_their_cell_and_failures_in_order(fake: ModuleType) -> None:
    cell = fake.cell()
    trials = [fake.trial(cell.key, fold, 0, None if fold % 2 else 0.5) for fold in (3, 2, 1, 0)]
    state = LedgerState.of([cell, *trials, trial(0)])
    assert [(one.key, record.fold) for one, record in state.finished()] == [(cell.key, 2), (cell.key, 0)]
    wanted = [Trial(fold, 0) for fold in range(3)]
    assert [(one.key, record.fold) for one, record in state.failures([cell.cell], wanted)] == [(cell.key, 1)]
    assert [record.fold for _, record in state.failures([cell.cell], [*wanted, Trial(3, 0)])] == [1, 3]
    assert state.undescribed() == ["c"]


def test_a_cell_is_found_by_the_beginning_of_its_key(fake: ModuleType) -> None:
    one, other = fake.cell(), fake.cell(k=3)
    state = LedgerState.of([one, other])
    assert state.find(one.key[:6]) == state.find(one.key) == one.key
    with pytest.raises(UserError, match="no cell of the ledger has a key that starts with 'zz'"):
        state.find("zz")
    with pytest.raises(UserError, match=f"'' matches 2 cells: {min(one.key, other.key)}"):
        state.find("")
