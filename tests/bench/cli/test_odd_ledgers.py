"""Ledgers that somebody has cut, joined or written with another version: a line of explanation, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Make = Callable[..., Path]
Lines = list[dict[str, Any]]


def cells(lines: Lines) -> Lines:
    return [line for line in lines if line["type"] == "cell"]


def trials(lines: Lines) -> Lines:
    return [line for line in lines if line["type"] == "trial"]


def without_a_cell(lines: Lines) -> Lines:
    return [line for line in lines if line is not cells(lines)[0]]


def with_a_plan_of_nothing(lines: Lines) -> Lines:
    (plan,) = (line for line in lines if line["type"] == "plan")
    return [*lines, {**plan, "cells": ["0123456789abcdef"]}]


def finished(when: Any) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        trials(lines)[0]["finished"] = when
        return lines

    return change


def of_another_training(lines: Lines) -> Lines:
    cells(lines)[0]["training"]["momentum"] = 0.9
    return lines


def of_other_versions(lines: Lines) -> Lines:
    cells(lines)[0]["versions"] = {"protocol": 99, "quantum": "yes"}
    return lines


def with_less_in_a_trial(lines: Lines) -> Lines:
    for name in ("seconds", "generated", "curve", "finished", "provenance", "macro_f1"):
        trials(lines)[0].pop(name, None)
    return lines


CASES: dict[str, Callable[[Lines], Lines]] = {
    "a cell that no line describes": without_a_cell,
    "a plan of cells that no line describes": with_a_plan_of_nothing,
    "a date that is none": finished("yesterday"),
    "no date": finished(None),
    "a date without a zone": finished("2026-01-01T00:00:00"),
    "a date before all time": finished("0001-01-01T00:00:00+14:00"),
    "a setting of training that is not known here": of_another_training,
    "other versions": of_other_versions,
    "a trial with less in it": with_less_in_a_trial,
}


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, mlflow_store: Path, tools: ModuleType) -> Path:
    """A workspace after a run of two cells."""
    folder: Path = tools.prepare(tmp_path_factory.mktemp("odd") / "runs", mlflow_store)
    assert tools.run(tools.grid(["none", "dropedge"], folds=2), folder)[0] == 0
    return folder


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", ["status", "sync"])
def test_an_odd_ledger_is_told_in_a_line(
    command: str, case: str, whole: Path, workspace: Make, tools: ModuleType
) -> None:
    folder = workspace()
    lines = [json.loads(line) for line in (whole / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    changed = CASES[case](lines)
    (folder / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from bench.cli.app import main; main()", command, "-w", str(folder)],
        cwd=tools.ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode in (0, 2), said
    assert "Traceback" not in said
    if done.returncode == 2:
        assert "error:" in said and len(done.stdout) == 0
        return
    if case.startswith("a cell that no line"):
        assert "describe" in said and cells(lines)[0]["key"] in said
        assert "1 cell; trials: 2 done" in said or "1 cell written" in said
    elif case.startswith("a plan of cells") and command == "status":
        assert "0123456789abcdef" in said and "2 cells; trials: 4 done" in said
