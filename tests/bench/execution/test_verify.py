"""Finished trials run again: every digit the same, and a changed one is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import typer

from bench.cli.commands.ledger import verify
from bench.execution.verify import Candidates
from bench.plan.cells import Cell
from bench.registry import UserError
from bench.results.workspace import Workspace

Make = Callable[..., Path]


@pytest.fixture
def finished(workspace: Make, tools: ModuleType) -> Path:
    folder = workspace()
    assert tools.run(tools.grid(["none", "gdm-unc", "dropedge"], epochs=3), folder)[0] == 0
    return folder


def check(folder: Path, sample: int = 10) -> int:
    with pytest.raises(typer.Exit) as end:
        verify(folder, sample, 0, folder.parent / "data", "cpu")
    return end.value.exit_code


def test_trials_come_out_the_same(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(finished) == 0
    assert "6 of 6 came out the same" in capsys.readouterr().out
    assert check(finished / "ledger.jsonl", sample=2) == 0
    assert "2 of 2 came out the same" in capsys.readouterr().out


def test_a_number_that_was_changed_by_hand_is_found(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Workspace(finished).ledger
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last = next(line for line in reversed(lines) if line["type"] == "trial")
    last["accuracy"] += 1e-12
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert check(finished) == 1
    out = capsys.readouterr().out
    assert "not the same" in out and "5 of 6 came out the same" in out


def test_trials_of_other_versions_stay_out_of_it(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Workspace(finished).ledger
    text = path.read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    first, *others = (line for line in lines if line["type"] == "cell")
    for cell in others:
        cell["versions"]["torch"] = "1.0"
        renamed = Cell.from_json(cell).key
        for line in lines:
            if line.get("cell") == cell["key"]:
                line["cell"] = renamed
        cell["key"] = renamed
    assert first["versions"]["torch"] != "1.0"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert check(finished) == 0
    out = capsys.readouterr().out
    assert "4 trials are of other versions" in out and "2 of 2 came out the same" in out


def test_nothing_to_verify_is_a_mistake(tmp_path: Path, tools: ModuleType) -> None:
    tools.write_trials(tmp_path / "runs", [{"type": "provenance", "id": "p"}])
    with pytest.raises(UserError, match="it has no finished trial"):
        Candidates.of(tmp_path / "runs", tmp_path)


def test_the_same_seed_chooses_the_same_trials(finished: Path) -> None:
    candidates = Candidates.of(finished, finished.parent / "data")
    chosen = [[(cell.key, trial) for cell, trial, _ in candidates.sample(3, seed)] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]
