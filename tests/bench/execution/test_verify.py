"""Finished trials run again: every digit the same, and a changed one is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import typer

from bench.cli.commands.ledger import verify
from bench.execution.verify import Candidates
from bench.registry import UserError
from bench.results import verification
from bench.results.ledger import LedgerState, read_records
from bench.results.provenance import provenance
from bench.results.records import CellRecord, ProvenanceRecord
from bench.results.workspace import Workspace, records_at

Make = Callable[..., Path]


@pytest.fixture
def finished(workspace: Make, tools: ModuleType) -> Path:
    folder = workspace()
    assert tools.run(tools.grid(["none", "gdm-unc", "dropedge"], epochs=3), folder)[0] == 0
    return folder


def check(folder: Path, sample: int = 10, limit: float | None = None) -> int:
    with pytest.raises(typer.Exit) as end:
        verify(folder, sample, 0, folder.parent / "data", "cpu", jobs=1, trial_timeout=limit)
    return end.value.exit_code


def test_trials_come_out_the_same(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(finished) == 0
    out = capsys.readouterr().out
    assert "6 of 6 came out the same" in out and f"on record in {verification.place_beside(finished)}" in out
    (run,) = verification.counting(finished, LedgerState.of(records_at(finished)))
    assert (run.same, run.sample, run.finished, run.stale, run.seed, run.different) == (6, 6, 6, 0, 0, ())
    assert run.facts == provenance().facts
    assert check(finished / "ledger.jsonl", sample=2) == 0
    assert "2 of 2 came out the same" in capsys.readouterr().out
    assert [one.sample for one in verification.read(finished)] == [6, 2]


def test_a_number_that_was_changed_by_hand_is_found(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Workspace(finished).ledger
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last = next(line for line in reversed(lines) if line["type"] == "trial")
    last["accuracy"] += 1e-12
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert check(finished) == 1
    out = capsys.readouterr().out
    assert "not the same" in out and "5 of 6 came out the same" in out
    (run,) = verification.read(finished)
    assert run.same == 5 and len(run.different) == 1 and "accuracy" in run.different[0]


def test_trials_of_other_versions_stay_out_of_it(
    finished: Path, tools: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Workspace(finished).ledger
    state = LedgerState.of(read_records(path))
    path.unlink()
    kept, *others = state.cells.values()
    older = {cell.key: replace(cell, versions={**cell.versions, "torch": "1.0"}) for cell in others}
    records = [
        replace(r, cell=older[r.cell].key if r.cell in older else r.cell)
        for t in state.trials.values()
        for r in t.values()
    ]
    tools.write_trials(finished, [CellRecord(cell.key, cell) for cell in (kept, *older.values())] + records)
    assert check(finished) == 0
    out = capsys.readouterr().out
    assert "left out: 4 trials of other versions" in out and "2 of 2 came out the same" in out


def test_nothing_to_verify_is_a_mistake(tmp_path: Path, tools: ModuleType) -> None:
    tools.write_trials(tmp_path / "runs", [ProvenanceRecord("p", {})])
    with pytest.raises(UserError, match="it has no finished trial"):
        Candidates.of(tmp_path / "runs", tmp_path)


def test_the_same_seed_chooses_the_same_trials(finished: Path) -> None:
    candidates = Candidates.of(finished, finished.parent / "data")
    chosen = [[(cell.key, trial) for cell, trial, _ in candidates.sample(3, seed)] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_a_method_that_ends_its_process_or_never_returns_is_a_line(
    workspace: Make,
    tools: ModuleType,
    misbehaving: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The class looks at a file, so its source, and with it the key, stays what it was."""
    folder, mark = workspace(), tmp_path / "mark"
    monkeypatch.setenv("AUGBENCH_TEST_MARK", str(mark))
    grid = tools.grid([f"{misbehaving}:{name}" for name in ("ExitsLater", "DiesLater", "LoopsLater")], folds=1)
    assert tools.run(grid, folder)[0] == 0
    mark.touch()
    assert check(folder, limit=8) == 1
    out = capsys.readouterr().out
    assert "SystemExit: 3; a method must return" in out
    assert "ended with exit code 9, 2 times in a row" in out
    assert "took longer than 8 s (--trial-timeout)" in out and "0 of 3 came out the same" in out
