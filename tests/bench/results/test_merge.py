"""Ledgers of separate machines become one; two different results for one trial are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.cli.commands.ledger import merge
from bench.registry import UserError
from bench.results.ledger import read_records
from bench.results.merge import Merged, merge_ledgers
from bench.results.records import CellRecord, ProvenanceRecord, TrialRecord
from bench.results.workspace import Workspace, records_at

Make = Callable[..., Path]


@pytest.fixture
def cell(fake: ModuleType) -> CellRecord:
    return fake.cell()


@pytest.fixture
def trial(fake: ModuleType, cell: CellRecord) -> Callable[..., TrialRecord]:
    """A trial of the cell that all ledgers here have; None for its accuracy is a failure."""
    return lambda fold, accuracy=0.5, **more: fake.trial(cell.key, fold, 0, accuracy, **more)


@pytest.fixture
def ledgers(tmp_path: Path, tools: ModuleType, fake: ModuleType, cell: CellRecord) -> Make:
    def make(name: str, *records: TrialRecord) -> Path:
        tools.write_trials(tmp_path / name, [ProvenanceRecord(name, {}), cell, fake.plan([cell.key], [0, 1]), *records])
        return tmp_path / name

    return make


def test_trials_of_both_are_in_the_merged_one(
    ledgers: Make, tools: ModuleType, tmp_path: Path, cell: CellRecord, trial: Callable[..., TrialRecord]
) -> None:
    a, b = ledgers("a", trial(0)), ledgers("b", trial(1))
    into = Workspace(tmp_path / "c")
    assert merge_ledgers([a, b], into) == Merged(1, 2)
    state = tools.state(into.root)
    assert len(state.done(cell.key)) == 2 and len(state.plans) == 1 and set(state.provenance) == {"a", "b"}
    assert [len(list(records_at(one))) for one in (a, b)] == [4, 4]  # the sources stay as they are


def test_merging_twice_or_in_the_other_order_is_the_same(
    ledgers: Make, tools: ModuleType, tmp_path: Path, cell: CellRecord, trial: Callable[..., TrialRecord]
) -> None:
    a, b = (
        ledgers("a", trial(0), trial(1, None)),
        ledgers("b", trial(1), trial(0, finished="2026-02-02", provenance="q")),
    )
    into = Workspace(tmp_path / "c")
    merge_ledgers([a, b], into)
    content = into.ledger.read_bytes()
    assert merge_ledgers([a, b], into) == merge_ledgers([b, a], into) == Merged(0, 0)
    assert into.ledger.read_bytes() == content
    other = Workspace(tmp_path / "d")
    merge_ledgers([b, a], other)
    assert tools.state(other.root).done(cell.key) == tools.state(into.root).done(cell.key)


def test_a_result_counts_more_than_a_failure(
    ledgers: Make, tools: ModuleType, tmp_path: Path, cell: CellRecord, trial: Callable[..., TrialRecord]
) -> None:
    a, b = ledgers("a", trial(0, None), trial(1, None)), ledgers("b", trial(0), trial(1, None, reason="other"))
    merge_ledgers([a, b], Workspace(a))
    state = tools.state(a)
    assert len(state.done(cell.key)) == 1
    assert [record.reason for record in state.failed(cell.key).values()] == ["out of memory"]


def test_times_and_origin_are_no_contradiction(
    ledgers: Make, tmp_path: Path, trial: Callable[..., TrialRecord]
) -> None:
    a = ledgers("a", trial(0))
    b = ledgers("b", trial(0, seconds={"train": 9.0}, finished="2026-02-02", provenance="q"))
    assert merge_ledgers([a, b], Workspace(tmp_path / "c")).trials == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": 0.5000000001}, "accuracy is 0.5 in .* and 0.5000000001 in"),
        ({"labels": 3}, "labels is 20 in .* and 3 in"),
        ({"engine": "fast/cpu"}, "engine is None in .* and fast/cpu in"),
        ({"predicted": {"0": 1.0}}, "predicted is {} in"),
        ({"generated": {"count": 1}}, "generated"),
    ],
)
def test_two_results_for_one_trial_are_refused_and_nothing_is_written(
    ledgers: Make, tmp_path: Path, change: dict[str, Any], message: str, trial: Callable[..., TrialRecord]
) -> None:
    a, b = ledgers("a", trial(0), trial(1)), ledgers("b", trial(0, **change), trial(1, **change))
    into = Workspace(tmp_path / "c")
    with pytest.raises(UserError, match=f"fold 0, repeat 0: {message}") as error:
        merge_ledgers([a, b], into)
    assert "1 more contradiction" in str(error.value)
    assert read_records(into.ledger) == []


def test_a_contradiction_with_the_target_is_refused_too(ledgers: Make, trial: Callable[..., TrialRecord]) -> None:
    a, b = ledgers("a", trial(0)), ledgers("b", trial(0, 0.75))
    before = (a / "ledger.jsonl").read_bytes()
    with pytest.raises(UserError, match="cannot merge"):
        merge_ledgers([b], Workspace(a))
    assert (a / "ledger.jsonl").read_bytes() == before


def test_a_cell_that_is_not_its_key_and_trials_without_a_cell_are_refused(
    tools: ModuleType, tmp_path: Path, cell: CellRecord, trial: Callable[..., TrialRecord]
) -> None:
    tools.write_trials(tmp_path / "a", [cell])
    tools.write_trials(tmp_path / "b", [CellRecord(cell.key, replace(cell.cell, k=3))])
    tools.write_trials(tmp_path / "o", [trial(0)])
    with pytest.raises(
        UserError, match=f"b/ledger.jsonl line 1 .*its key is '{cell.key}', and what it says has the key"
    ):
        merge_ledgers([tmp_path / "a", tmp_path / "b"], Workspace(tmp_path / "c"))
    with pytest.raises(UserError, match="no line that describes it"):
        merge_ledgers([tmp_path / "o"], Workspace(tmp_path / "c"))
    assert not read_records(tmp_path / "c" / "ledger.jsonl")


def test_the_command_takes_workspaces_and_files_and_merges_into_the_first(
    ledgers: Make,
    tools: ModuleType,
    capsys: pytest.CaptureFixture[str],
    cell: CellRecord,
    trial: Callable[..., TrialRecord],
) -> None:
    a, b = ledgers("a", trial(0)), ledgers("b", trial(1))
    merge([a, b / "ledger.jsonl"], None)
    assert "0 cells and 1 trial;" in capsys.readouterr().out
    assert len(tools.state(a).done(cell.key)) == 2


def test_what_cannot_be_merged(ledgers: Make, tmp_path: Path) -> None:
    a = ledgers("a")
    with pytest.raises(UserError, match="there is no workspace, ledger or archive"):
        merge([a, tmp_path / "none.parquet"], None)
    with pytest.raises(UserError, match="there is nothing to merge"):
        merge([a], None)
    with pytest.raises(UserError, match="is a file; name a workspace"):
        merge([a / "ledger.jsonl", a], None)
    with pytest.raises(UserError, match="there is no ledger in"):
        (tmp_path / "empty").mkdir()
        merge([a, tmp_path / "empty"], None)
