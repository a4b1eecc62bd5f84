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

import pytest
from rich.console import Console

from bench.cli.cell_table import cell_lines
from bench.cli.status import print_status
from bench.cli.why import explain
from bench.execution.request import RunRequest
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from bench.plan.staleness import differences
from bench.registry import Choice, UserError
from bench.results.records import CellRecord, PlanRecord, ProvenanceRecord
from bench.results.workspace import Workspace

Make = Callable[..., Path]


ORIGIN = {"augbench": "0.1", "commit": "abcdef0123456789", "dirty": True, "torch": "2.0", "python": "3.11"}


@pytest.fixture
def ledger(tmp_path: Path, tools: ModuleType, fake: ModuleType) -> Path:
    """Three cells: finished, with a failure and something missing, and measured with another torch."""
    plan = Planner(tmp_path / "data", RunRequest.engine).plan(tools.grid(["none", "dropedge", "m-mixup"], folds=3))
    done, partly, old = plan.cells
    old = replace(old, versions={**old.versions, "torch": "1.13"})
    plan = replace(plan, cells=(done, partly, old))
    trials = [fake.trial(done.key, fold) for fold in range(3)]
    trials += [fake.trial(partly.key, 0), fake.trial(partly.key, 1, 0, None, reason="RuntimeError: boom [x]")]
    trials += [fake.trial(old.key, fold) for fold in range(2)]
    cells = [CellRecord(cell.key, cell) for cell in plan.cells]
    folder = tmp_path / "runs"
    tools.write_trials(folder, [ProvenanceRecord("p1", ORIGIN), *cells, PlanRecord.of(plan), *trials])
    return folder


def shown(print_it: Callable[[Console], None]) -> str:
    out = io.StringIO()
    print_it(Console(file=out, width=200))
    return out.getvalue()


def test_status_counts_done_failed_stale_and_missing_of_each_cell(ledger: Path, tmp_path: Path) -> None:
    text = shown(lambda console: print_status(ledger, tmp_path / "data", console))
    rows = {line.split()[4]: line.split()[7:] for line in text.splitlines() if "synthetic" in line}
    assert rows["none"] == ["3", "0", "0", "0", "50.0", "0%"]
    assert rows["dropedge"] == ["1", "1", "0", "1", "50.0", "0%"]
    assert rows["m-mixup"] == ["2", "0", "2", "1", "50.0", "0%"]
    assert "3 cells; trials: 6 done, 1 failed, 2 stale, 2 missing" in text
    assert "1 x failed: dropedge: RuntimeError: boom [x]" in text
    assert "bench why CELL" in text


def test_a_narrow_terminal_gets_what_differs_and_every_number(ledger: Path, tmp_path: Path) -> None:
    out = io.StringIO()
    print_status(ledger, tmp_path / "data", Console(file=out, width=80))
    above, heads, *lines = out.getvalue().splitlines()
    assert above == "in every cell: dataset synthetic:graphs=60, k 2, model gcn mean"
    assert heads.split() == ["cell", "augmenter", "done", "failed", "stale", "missing", "acc."]
    rows = {line.split()[1]: line.split()[2:] for line in lines[:3]}
    assert rows["dropedge"] == ["1", "1", "0", "1", "50.0"] and rows["m-mixup"] == ["2", "0", "2", "1", "50.0"]


def test_long_names_give_way_to_numbers() -> None:
    same = {"dataset": "graphs-226debecb125fb9e", "learner": "gnn", "backbone": "gcn", "readout": "mean"}
    counts = {"done": "30", "failed": "0", "stale": "0", "missing": "0", "accuracy": "61.2", "collapsed": "0%"}
    rows = [
        {"cell": f"{k:08d}", **same, "k": str(k), "augmenter": f"MyAugmenter_9ba1776d:MyAugmenter:eps=0.{k}", **counts}
        for k in (2, 5)
    ]
    above, *lines = cell_lines(rows, 40)
    assert above == "in every cell: dataset graphs-226debecb125fb9e, model gcn mean"
    assert all(len(line) <= 40 + len("[bold][/]" * 5) for line in lines)
    assert [line.split()[-2:] for line in lines[1:]] == [["30", "61.2"]] * 2
    assert "…" in lines[1] and "eps=0.2" in lines[1] and "eps=0.5" in lines[2]


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
    assert text.count("versions.torch") == 2  # and once more as what sets it apart from its neighbor


def test_why_says_when_nothing_changed_and_names_the_nearest_cell(
    ledger: Path, tmp_path: Path, tools: ModuleType
) -> None:
    key = key_of(ledger, tools, "none")
    text = shown(lambda console: explain(ledger, key, tmp_path / "data", console))
    assert "would make the same cell: nothing has changed" in text
    assert f"nearest other cell: {key_of(ledger, tools, 'dropedge')}" in text
    assert "augmenter.name" in text and "here none, there dropedge" in text


def test_why_sees_a_changed_default_and_changed_data(ledger: Path, tmp_path: Path, tools: ModuleType) -> None:
    cell = tools.state(ledger).cells[key_of(ledger, tools, "dropedge")]
    augmenter = replace(cell.augmenter, settings={"p": 0.5})
    old = replace(cell, augmenter=augmenter, versions={**cell.versions, "dataset": "beef"})
    tools.write_trials(ledger, [CellRecord(old.key, old)])
    text = shown(lambda console: explain(ledger, old.key[:10], tmp_path / "data", console))
    assert "augmenter.settings.p then 0.5, now 0.25" in " ".join(text.split())
    assert "versions.dataset" in text and "then beef" in text


def test_why_tells_when_a_plug_in_is_gone(ledger: Path, tmp_path: Path, tools: ModuleType) -> None:
    cell = tools.state(ledger).cells[key_of(ledger, tools, "none")]
    gone = replace(cell, augmenter=Choice("gone", {}, "gone"))
    tools.write_trials(ledger, [CellRecord(gone.key, gone)])
    text = shown(lambda console: explain(ledger, gone.key[:10], tmp_path / "data", console))
    assert "the code here cannot make this cell: unknown augmenter 'gone'" in text


def test_why_needs_one_cell(ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cell of the ledger has a key that starts with 'zz'"):
        explain(ledger, "zz", tmp_path)
    with pytest.raises(UserError, match="'' matches 3 cells"):
        explain(ledger, "", tmp_path)


def test_differences_are_named_by_their_path(fake: ModuleType) -> None:
    one = fake.cell().cell
    training = replace(one.training, preset="standard+epochs=4", epochs=4)
    other = replace(one, training=training, augmenter=Choice("none", {"p": 1}, "none"), readout=None, backbone=None)
    assert differences(one, one) == {}
    assert differences(one, other) == {
        "training.preset": ("standard", "standard+epochs=4"),
        "training.epochs": (800, 4),
        "augmenter.settings.p": (None, 1),
        **{
            f"{part}.{name}": (label, None)
            for part, label in (("backbone", "gcn"), ("readout", "mean"))
            for name in ("name", "label")
        },
    }


def test_status_of_13200_trials_takes_less_than_two_seconds_and_no_torch(
    tmp_path: Path, tools: ModuleType, fake: ModuleType
) -> None:
    grid = Grid("full", product(["synthetic"], k=range(1, 441)))
    plan = Planner(tmp_path, RunRequest.engine).plan(grid)
    curve = [[epoch, 0.123456] for epoch in range(21)]
    jobs = [(cell.key, trial) for cell in plan.cells for trial in plan.trials]
    trials = [fake.trial(key, trial.fold, trial.repeat, curve=curve) for key, trial in jobs]
    cells = [CellRecord(cell.key, cell) for cell in plan.cells]
    tools.write_trials(tmp_path / "runs", [*cells, PlanRecord.of(plan), *trials])
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


def test_status_says_which_engine_ran_where_it_was_not_the_one_asked_for(
    ledger: Path, tmp_path: Path, tools: ModuleType, fake: ModuleType
) -> None:
    key = key_of(ledger, tools, "none")
    handed = [fake.trial(key, fold, 1, engine="reference", handed_over="an edge twice in one graph") for fold in (0, 1)]
    tools.write_trials(ledger, handed)
    text = shown(lambda console: print_status(ledger, tmp_path, console))
    assert "2 trials ran on reference: an edge twice in one graph" in text
