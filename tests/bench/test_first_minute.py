"""The watch behind the table of the first minute sees a terminal's first line, the ledger's first trial, the end."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bench.registry import UserError

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "first_minute.py"


@pytest.fixture(scope="module")
def first_minute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("augbench_first_minute", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_moment_is_noted_in_its_turn(first_minute: ModuleType, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    code = f"""import sys, time
assert sys.stdout.isatty()
print("a line")
time.sleep(0.2)
open({str(ledger)!r}, "w").write('{{"type":"trial"}}')
time.sleep(0.2)
print("the end")"""
    seen = first_minute.watch([sys.executable, "-c", code], ledger)
    assert seen.first_line + 0.15 < seen.first_trial < seen.end - 0.1
    assert seen.text.split() == ["a", "line", "the", "end"]
    row = first_minute.Row("six", lambda home: [], rounds=[seen])
    assert row.line() == f"| six | {seen.first_line:.2f} | {seen.first_trial:.2f} | {seen.end:.2f} |"


def test_a_command_that_fails_is_told_with_its_words(first_minute: ModuleType) -> None:
    with pytest.raises(UserError, match=r"ended with 3: .*no such thing"):
        first_minute.watch([sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"], None)


def test_what_quick_costs_is_found_in_its_last_words(first_minute: ModuleType) -> None:
    said = "60 trials took 31 s in sum over workers; waiting for planning 0.4 s, MLflow 0.9 s, ledger 0.1 s (4.5 %)"
    found = first_minute.OVERHEAD.search(f"A difference of 3 points. {said} ledger: runs/ledger.jsonl")
    assert found is not None and found[0].partition(" ledger: runs")[0] == said
