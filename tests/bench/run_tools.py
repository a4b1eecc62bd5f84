"""Small runs for the tests of grids: requests, what a ledger holds without its times, plug-ins that misbehave."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.cli.run_report import run_and_report
from bench.execution.request import RunRequest
from bench.plan.grids import Grid, product
from bench.results.ledger import LedgerState, read_records
from bench.results.records import CIRCUMSTANCES, Record, TrialRecord
from bench.results.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]

MISBEHAVING = """
import os
import time
from dataclasses import dataclass

from augmenters.controls import Unchanged


@dataclass(frozen=True)
class Raises(Unchanged):
    def draw(self, graphs, rng, context):
        raise RuntimeError("boom [not markup]")


@dataclass(frozen=True)
class Exhausts(Unchanged):
    def draw(self, graphs, rng, context):
        import torch

        torch.empty(10**15)


@dataclass(frozen=True)
class Blows(Unchanged):
    def apply(self, graphs, drawn):
        changed = [graph.clone() for graph in super().apply(graphs, drawn)]
        for graph in changed:
            graph.x = graph.x * float("nan")
        return changed


@dataclass(frozen=True)
class Dies(Unchanged):
    def draw(self, graphs, rng, context):
        os._exit(9)


@dataclass(frozen=True)
class Exits(Unchanged):
    def draw(self, graphs, rng, context):
        raise SystemExit(3)


@dataclass(frozen=True)
class Interrupts(Unchanged):
    def draw(self, graphs, rng, context):
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Leaves(Unchanged):
    def draw(self, graphs, rng, context):
        raise GeneratorExit


@dataclass(frozen=True)
class Aborts(Unchanged):
    def draw(self, graphs, rng, context):
        print("about to abort [not markup]", flush=True)
        os.abort()


@dataclass(frozen=True)
class Loops(Unchanged):
    def draw(self, graphs, rng, context):
        while True:
            pass


@dataclass(frozen=True)
class Retypes(Unchanged):
    def draw(self, graphs, rng, context):
        import torch

        torch.set_default_dtype(torch.float64)
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class Patches(Unchanged):
    def draw(self, graphs, rng, context):
        from augmenters.dropedge import DropEdge

        DropEdge.draw_factors = lambda self, edges, rng: rng.random(edges.total) >= 0.9
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class Sometimes(Unchanged):
    loop: bool = False

    def draw(self, graphs, rng, context):
        while self.loop:
            pass
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class Storms(Unchanged):
    def draw(self, graphs, rng, context):
        import sys
        import warnings

        for number in range(200_000):
            print("a line of a storm", number)
            print("a line of a storm", number, file=sys.stderr)
        for number in range(100_000):
            warnings.warn("the same again and again", stacklevel=1)
            warnings.warn(f"storm number {number}", stacklevel=1)
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class DiesBeside(Unchanged):
    def draw(self, graphs, rng, context):
        while not os.path.exists(os.environ["AUGBENCH_TEST_MARK"]):
            time.sleep(0.02)
        os._exit(9)


def late():
    return os.path.exists(os.environ["AUGBENCH_TEST_MARK"])


@dataclass(frozen=True)
class ExitsLater(Unchanged):
    def draw(self, graphs, rng, context):
        if late():
            raise SystemExit(3)
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class DiesLater(Unchanged):
    def draw(self, graphs, rng, context):
        if late():
            os._exit(9)
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class LoopsLater(Unchanged):
    def draw(self, graphs, rng, context):
        while late():
            pass
        return super().draw(graphs, rng, context)


@dataclass(frozen=True)
class DiesOnce(Unchanged):
    def draw(self, graphs, rng, context):
        with open(os.environ["AUGBENCH_TEST_MARK"], "a") as mark:
            mark.write(".")
            mark.flush()
            call = mark.tell()
        if call == 1:
            os._exit(9)
        return super().draw(graphs, rng, context)
"""


def grid(
    augmenters: Sequence[str] = ("none",), k: Sequence[int] = (2,), folds: int = 2, epochs: int = 2, **more: Any
) -> Grid:
    """A grid that takes seconds: random graphs, a few epochs."""
    name, repeats = more.pop("name", "small"), more.pop("repeats", 1)
    datasets = more.pop("datasets", ["synthetic:graphs=60"])
    cells = product(datasets, augmenters, k, **more)
    return Grid(name, cells, folds=folds, repeats=repeats, training={"epochs": epochs})


def run(grid: Grid, workspace: Path, **options: Any) -> tuple[int, str]:
    """Run in this process unless told otherwise; exit code and what it printed."""
    out = io.StringIO()
    how = {} if "jobs" in options or "executor" in options else {"executor": "serial"}
    request = RunRequest(grid, workspace, **{"data": workspace.parent / "data", **how, **options})
    return run_and_report(request, Console(file=out, width=200)), out.getvalue()


def state(workspace: Path) -> LedgerState:
    return LedgerState.of(read_records(Workspace(workspace).ledger))


def results(workspace: Path) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Every trial of a ledger without its times; a trial that has two lines is a mistake."""
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for record in read_records(Workspace(workspace).ledger):
        if isinstance(record, TrialRecord):
            key = (record.cell, record.fold, record.repeat)
            assert key not in found, f"{key} is in the ledger twice"
            found[key] = {name: value for name, value in record.to_json().items() if name not in CIRCUMSTANCES}
    return found


def trial_lines(workspace: Path) -> int:
    try:
        return Workspace(workspace).ledger.read_bytes().count(b'{"type":"trial"')
    except FileNotFoundError:
        return 0


def start(
    workspace: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """`bench run` as a process group of its own, so that signals reach it as from a terminal."""
    program = "from bench.cli.app import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "run", "--workspace", str(workspace), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # where the tests run in the background, they ignore Ctrl-C, and what they start would too
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> None:
    """Wait for something that happens elsewhere."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"nothing happened in {seconds} s"
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def prepare(workspace: Path, store: Path) -> Path:
    """A workspace with an MLflow store that was made before: making its tables takes seconds."""
    workspace.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(store, workspace / "mlflow.db")
    return workspace


def write_trials(workspace: Path, records: Iterable[Record]) -> None:
    """Put records into a ledger by hand."""
    workspace.mkdir(parents=True, exist_ok=True)
    with Workspace(workspace).ledger.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record.to_json()) + "\n" for record in records)


def ends(workspace: Path) -> dict[str, TrialRecord]:
    """The record of each method's trial, by the name of its class, in a ledger where each has one."""
    found = state(workspace)
    return {
        found.cells[key].augmenter.name.rpartition(":")[2]: record
        for key, trials in found.trials.items()
        for record in trials.values()
    }
