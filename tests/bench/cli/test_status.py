"""What a workspace holds: the state of each cell, what changed behind a stale one, and fast on a full ledger."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from bench.api import RunOutcome
from bench.cli.run_report import say_engines
from bench.cli.status import print_status
from bench.cli.why import explain
from bench.execution.request import RunRequest
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.plan.staleness import differences
from bench.registry import Choice, UserError
from bench.results.records import CellRecord, PlanRecord
from bench.results.workspace import Workspace

Make = Callable[..., Path]


def trial(key: str, fold: int, repeat: int = 0, **more: Any) -> dict[str, Any]:
    scores = {"accuracy": 0.5, "balanced_accuracy": 0.5, "macro_f1": 0.5, "loss": 0.1, "labels": 4}
    rest = {"seconds": {"augment": 0.1, "train": 4.0, "evaluate": 0.1}, "generated": {}, "reason": None}
    curve = [[epoch, 0.123456] for epoch in range(21)]
    line = {"type": "trial", "cell": key, "fold": fold, "repeat": repeat, "status": "done", **scores, **rest}
    return {**line, "curve": curve, "finished": "2026-01-01T00:00:00+00:00", "provenance": "p", **more}


@pytest.fixture
def ledger(tmp_path: Path, tools: ModuleType) -> Path:
    """Three cells: finished, with a failure and something missing, and measured with another torch."""
    plan = Planner(tmp_path / "data", RunRequest.engine).plan(tools.grid(["none", "dropedge", "m-mixup"], folds=3))
    made = list(plan.cells)
    made[2] = replace(made[2], versions={**made[2].versions, "torch": "1.13"})
    cells = [CellRecord(cell.key, cell).to_json() for cell in made]
    keys = [cell.key for cell in made]
    trials = [trial(keys[0], fold) for fold in range(3)]
    trials += [trial(keys[1], 0), trial(keys[1], 1, status="failed", reason="RuntimeError: boom [x]")]
    trials += [trial(keys[2], fold) for fold in range(2)]
    origin = {"type": "provenance", "id": "p", "augbench": "0.1", "commit": "abcdef0123456789", "dirty": True}
    folder = tmp_path / "runs"
    sought = PlanRecord.of(replace(plan, cells=tuple(made))).to_json()
    tools.write_trials(folder, [{**origin, "torch": "2.0", "python": "3.11"}, *cells, sought, *trials])
    return folder


def shown(print_it: Callable[[Console], None]) -> str:
    out = io.StringIO()
    print_it(Console(file=out, width=200))
    return out.getvalue()


def test_status_counts_done_failed_stale_and_missing_of_each_cell(ledger: Path, tmp_path: Path) -> None:
    text = shown(lambda console: print_status(ledger, tmp_path / "data", console))
    rows = {line.split()[3]: line.split()[6:] for line in text.splitlines() if "synthetic" in line}
    assert rows["none"] == ["3", "0", "0", "0", "50.0"]
    assert rows["dropedge"] == ["1", "1", "0", "1", "50.0"]
    assert rows["m-mixup"] == ["2", "0", "2", "1", "50.0"]
    assert "3 cells; trials: 6 done, 1 failed, 2 stale, 2 missing" in text
    assert "1 x failed: dropedge: RuntimeError: boom [x]" in text
    assert "bench why CELL" in text


def test_status_of_nothing_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no ledger in .*`bench run` first"):
        print_status(tmp_path, tmp_path)


def key_of(ledger: Path, tools: ModuleType, augmenter: str) -> str:
    return next(key for key, cell in tools.state(ledger).cells.items() if cell.augmenter.name == augmenter)


def test_why_names_the_version_that_changed(ledger: Path, tmp_path: Path, tools: ModuleType) -> None:
    key = key_of(ledger, tools, "m-mixup")
    text = shown(lambda console: explain(ledger, key[:8], tmp_path / "data", console))
    assert "2 trials done, 0 failed, 1 missing" in text
    assert "commit abcdef012345 with changes, torch 2.0" in text
    assert "would make another cell" in text
    assert "versions.torch  then 1.13, now " in text
    assert text.count("versions.torch") == 2  # and once more as what sets it apart from its neighbour


def test_why_says_when_nothing_changed_and_names_the_nearest_cell(
    ledger: Path, tmp_path: Path, tools: ModuleType
) -> None:
    key = key_of(ledger, tools, "none")
    text = shown(lambda console: explain(ledger, key, tmp_path / "data", console))
    assert "would make the same cell: nothing has changed" in text
    assert f"nearest other cell: {key_of(ledger, tools, 'dropedge')}" in text
    assert "augmenter.name" in text and "here none, there dropedge" in text


def test_why_sees_a_changed_default_and_changed_data(ledger: Path, tmp_path: Path, tools: ModuleType) -> None:
    state = tools.state(ledger)
    cell = state.cells[key_of(ledger, tools, "dropedge")]
    changed = replace(cell.augmenter, settings={"p": 0.5})
    old = replace(cell, augmenter=changed, versions={**cell.versions, "dataset": "beef"})
    tools.write_trials(ledger, [CellRecord(old.key, old).to_json()])
    text = shown(lambda console: explain(ledger, old.key, tmp_path / "data", console))
    assert "augmenter.settings.p then 0.5, now 0.25" in " ".join(text.split())
    assert "versions.dataset" in text and "then beef" in text


def test_why_tells_when_a_plug_in_is_gone(ledger: Path, tmp_path: Path, tools: ModuleType) -> None:
    cell = tools.state(ledger).cells[key_of(ledger, tools, "none")]
    gone = replace(cell, augmenter=Choice("gone", {}, "gone"))
    tools.write_trials(ledger, [CellRecord(gone.key, gone).to_json()])
    text = shown(lambda console: explain(ledger, gone.key, tmp_path / "data", console))
    assert "the code here cannot make this cell: unknown augmenter 'gone'" in text


def test_why_needs_one_cell(ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cell of the ledger has a key that starts with 'zz'"):
        explain(ledger, "zz", tmp_path)
    with pytest.raises(UserError, match="'' fits 3 cells"):
        explain(ledger, "", tmp_path)


def test_differences_are_named_by_their_path(tmp_path: Path, tools: ModuleType) -> None:
    (one,) = Planner(tmp_path, RunRequest.engine).plan(tools.grid()).cells
    other = replace(one, training=replace(one.training, epochs=4, lr=1.0))
    assert differences(one, other) == {"training.epochs": (2, 4), "training.lr": (0.01, 1.0)}


def test_status_and_run_say_which_trials_another_engine_ran_and_why(
    ledger: Path, tmp_path: Path, tools: ModuleType
) -> None:
    key = key_of(ledger, tools, "none")
    why = {"engine": "reference/cpu", "handed_over": "softmax[x] has no fast form"}
    tools.write_trials(ledger, [trial(key, fold, **why) for fold in (0, 1)])
    text = shown(lambda console: print_status(ledger, tmp_path / "data", console))
    assert "2 trials ran on reference/cpu: softmax[x] has no fast form" in text.splitlines()
    plan = Planner(tmp_path / "data", RunRequest.engine).plan(tools.grid(["none", "dropedge"], folds=3))
    outcome = RunOutcome(plan, tools.state(ledger), 2, 1.0, False, {})
    text = shown(lambda console: say_engines(outcome, console))
    assert text == "2 of 4 trials ran on the reference engine: softmax[x] has no fast form (2)\n"


def test_status_of_13200_trials_takes_less_than_two_seconds_and_no_torch(tmp_path: Path, tools: ModuleType) -> None:
    base = Planner(tmp_path, RunRequest.engine).plan(Grid("full", product(["synthetic"])))
    made = [replace(base.cells[0], k=number + 1) for number in range(440)]
    cells = [CellRecord(cell.key, cell).to_json() for cell in made]
    plan = PlanRecord.of(replace(base, cells=tuple(made))).to_json()
    trials = [trial(cell["key"], fold, repeat) for cell in cells for fold in range(10) for repeat in range(3)]
    tools.write_trials(tmp_path / "runs", [*cells, plan, *trials])
    program = (
        "import sys\nsys.argv = ['bench', 'status', '-w', sys.argv[1]]\nfrom bench.cli.app import main\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "runs")], cwd=tools.ROOT, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime  # of work, however busy the machine
    assert done.returncode == 0, done.stderr
    assert "440 cells; trials: 13200 done, 0 failed, 0 stale, 0 missing" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
    assert len(Workspace(tmp_path / "runs").ledger.read_bytes()) > 5_000_000
    assert seconds < 2
