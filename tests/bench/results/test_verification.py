"""What `bench verify` found: kept beside the trials, counted for exactly those, and told where it cannot be kept."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import bench as augbench
from bench.cli.commands import ledger as commands
from bench.execution import verify as execution
from bench.plan.planner import Planner
from bench.registry import UserError
from bench.results import verification
from bench.results.archive import write_archive
from bench.results.ledger import LedgerState
from bench.results.records import CellRecord, PlanRecord, Record, TrialRecord
from bench.results.verification import Verification, verified_words
from bench.results.workspace import records_at

FACTS = {"augbench": "0.2", "commit": "0123456789abcdef", "dirty": False}


@pytest.fixture
def runs(tools: ModuleType, tmp_path: Path) -> Path:
    """A workspace whose trials were never run."""
    plan = Planner(tmp_path / "data").plan(tools.grid(["none", "dropedge"], folds=3, repeats=1))
    records: list[Record] = [CellRecord(cell.key, cell) for cell in plan.cells] + [PlanRecord.of(plan)]
    scores: dict[str, Any] = {"accuracy": 0.75, "balanced_accuracy": 0.7, "macro_f1": 0.6, "loss": 0.5}
    records += [
        TrialRecord(cell.key, t.fold, t.repeat, "done", **scores, curve=[[1, 0.9], [2, 0.7]], finished="2026-01-01")
        for cell in plan.cells
        for t in plan.trials
    ]
    tools.write_trials(tmp_path / "runs", records)
    return tmp_path / "runs"


def state_of(source: Path, curves: bool = True) -> LedgerState:
    return LedgerState.of(records_at(source, curves))


def a_run(state: LedgerState, **changes: Any) -> Verification:
    run = Verification("2026-01-31T10:00:00+00:00", verification.digest(state), 6, 0, 4, 0, 4, (), FACTS)
    return replace(run, **changes)


def test_it_counts_for_the_same_trials_wherever_they_lie(runs: Path, tmp_path: Path) -> None:
    run = a_run(state_of(runs))
    assert verified_words(runs, state_of(runs)) == "not verified"
    assert verification.add(run, runs) == runs / "ledger.jsonl.verified.json"
    words = "4 of 4 came out the same on 2026-01-31 (augbench 0.2, commit 0123456789ab; sample of 6)"
    assert verified_words(runs, state_of(runs)) == verified_words(runs / "ledger.jsonl", state_of(runs)) == words

    archive = tmp_path / "trials.parquet"
    write_archive(state_of(runs).records(), archive)
    assert verified_words(archive, state_of(archive)) == "not verified"
    verification.place_beside(archive).write_bytes(verification.place_beside(runs).read_bytes())
    assert verified_words(archive, state_of(archive, curves=False)) == words


@pytest.mark.parametrize("change", ["a digit", "one trial fewer", "a trial of another cell"])
def test_it_does_not_count_for_other_trials(runs: Path, tools: ModuleType, change: str) -> None:
    verification.add(a_run(state_of(runs)), runs)
    records = list(state_of(runs).records())
    last = records[-1]
    assert isinstance(last, TrialRecord) and last.accuracy is not None
    other = next(one.key for one in records if isinstance(one, CellRecord) and one.key != last.cell)
    if change == "a digit":
        records[-1] = replace(last, accuracy=last.accuracy + 1e-12)
    elif change == "one trial fewer":
        del records[-1]
    else:
        records[-1] = replace(last, cell=other, repeat=1)
    (runs / "ledger.jsonl").unlink()
    tools.write_trials(runs, records)
    state = state_of(runs)
    assert verified_words(runs, state) == "not verified (the record beside them is of other trials)"
    verification.add(a_run(state, sample=1, same=1), runs)
    assert [one.sample for one in verification.read(runs)] == [1], "what counts no more does not stay"


def test_a_difference_is_not_outdone_by_a_later_sample(runs: Path) -> None:
    state = state_of(runs)
    verification.add(a_run(state, same=3, different=("dropedge, fold 1: accuracy 0.7 then, 0.8 now",)), runs)
    verification.add(a_run(state, sample=1, same=1, facts={**FACTS, "dirty": True}), runs)
    assert verified_words(runs, state) == (
        "1 of 1 came out the same on 2026-01-31 (augbench 0.2, commit 0123456789ab with changes; sample of 6); "
        "3 of 4 came out the same on 2026-01-31 (augbench 0.2, commit 0123456789ab; sample of 6)"
    )
    assert verification.read(runs)[0].different == ("dropedge, fold 1: accuracy 0.7 then, 0.8 now",)


def test_it_goes_along_with_a_shared_folder(runs: Path, tmp_path: Path) -> None:
    """And stands on the page; a report from Python has the loss curves too, and leaves them in the results."""
    run = a_run(state_of(runs))
    verification.add(run, runs)
    shared = augbench.share(tmp_path / "shared", runs)
    assert tmp_path / "shared" / "trials.parquet.verified.json" in shared.files
    loaded = augbench.load(tmp_path / "shared")
    assert loaded.verifications == [run]
    assert "4 of 4 came out the same on 2026-01-31" in (tmp_path / "shared" / "README.md").read_text()
    page = loaded.report(tmp_path / "page.html", title="Mine")
    assert page == (tmp_path / "page.html").read_text(encoding="utf-8") and "<h1>Mine</h1>" in page
    for text in (page, (tmp_path / "shared" / "report.html").read_text(encoding="utf-8")):
        assert "4 of 4 came out the same on 2026-01-31" in text
        assert '"curve":[[1,0.9,0.9,0.9],[2,0.7,0.7,0.7]]' in text
    assert all(record.curve for _, record in loaded.state.finished())
    assert augbench.load(runs, tmp_path / "shared").verifications == [run, run], "joined, they are the same trials"
    with pytest.raises(UserError, match="a report shows every cell"):
        loaded.report(where={"augmenter": "none"})


@pytest.mark.parametrize("text", ["{}", "[{}]", "not JSON", '[{"at": 1}]', "more", "[" * 5000])
def test_what_is_no_record_is_told_before_anything_runs(runs: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "verify", lambda *_: pytest.fail("trials were run"))
    if text == "more":  # the same than were run
        text = json.dumps([asdict(a_run(state_of(runs), same=5))])
    verification.place_beside(runs).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"is not a record of `bench verify` .*; delete it and verify again"):
        commands.verify(runs, 1, 0, runs.parent / "data", "cpu", jobs=1, trial_timeout=None)


def test_where_nothing_can_be_written_the_result_is_still_told(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    def again(chosen: list[execution.Finished], *_: object) -> list[execution.Check]:
        return [execution.Check(cell, trial, record, record) for cell, trial, record in chosen]

    monkeypatch.setattr(verification, "write", read_only)
    monkeypatch.setattr(execution, "verify", again)
    with pytest.raises(typer.Exit) as end:
        commands.verify(runs, 2, 0, runs.parent / "data", "cpu", jobs=1, trial_timeout=None)
    out = capsys.readouterr().out
    assert end.value.exit_code == 0 and "2 of 2 came out the same" in out
    assert f"kept no record of this: cannot write beside {runs} (Read-only file system)" in out
