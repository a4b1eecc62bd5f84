"""Runs that are killed or interrupted at any moment and resumed end with the ledger of one that was not."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psutil
import pytest

Make = Callable[..., Path]

METHODS = ("none", "dropedge", "m-mixup", "gdm-acc")
ARGUMENTS = [
    *("-d", "synthetic:graphs=60", "-k", "2,3", "--folds", "3", "--repeats", "1", "--epochs", "4"),
    *(word for method in METHODS for word in ("-a", method)),
]


@pytest.fixture(scope="module")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory, tools: ModuleType, mlflow_store: Path
) -> dict[tuple[str, int, int], dict[str, object]]:
    folder = tools.prepare(tmp_path_factory.mktemp("whole") / "runs", mlflow_store)
    grid = tools.grid(METHODS, k=[2, 3], folds=3, epochs=4, name="custom")
    assert tools.run(grid, folder)[0] == 0
    found: dict[tuple[str, int, int], dict[str, object]] = tools.results(folder)
    return found


def test_killed_at_random_moments_and_resumed_it_ends_as_if_nothing_had_happened(
    workspace: Make, tools: ModuleType, uninterrupted: dict[tuple[str, int, int], dict[str, object]]
) -> None:
    folder, rng = workspace(), random.Random()
    stops = sorted(rng.sample(range(1, 20), 2))
    for jobs, stop in zip(("1", "2"), stops, strict=True):
        process = tools.start(folder, [*ARGUMENTS, "--jobs", jobs])
        tools.wait_until(lambda stop=stop: tools.trial_lines(folder) >= stop)
        time.sleep(rng.random() / 10)  # anywhere in a trial, or in a write
        workers = psutil.Process(process.pid).children(recursive=True)
        tools.kill(process)
        tools.wait_until(lambda workers=workers: not any(worker.is_running() for worker in workers), 30)
    # A write that was cut in the middle, as a loss of power leaves it.
    with (folder / "ledger.jsonl").open("ab") as ledger:
        ledger.write(b'{"type":"trial","cell":"')
    grid = tools.grid(METHODS, k=[2, 3], folds=3, epochs=4, name="custom")
    code, out = tools.run(grid, folder)
    assert code == 0 and "trials done already" in out and "unfinished line" in out
    assert tools.results(folder) == uninterrupted, f"killed after {stops} trials"


def test_ctrl_c_ends_within_seconds_keeps_all_and_leaves_no_process(workspace: Make, tools: ModuleType) -> None:
    folder = workspace()
    endless = ["-d", "synthetic:graphs=60", "-a", "none", "--epochs", "300", "--repeats", "500", "--jobs", "2"]
    process = tools.start(folder, endless)
    tools.wait_until(lambda: tools.trial_lines(folder) >= 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    assert len(workers) >= 2
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to the workers too
    out, _ = process.communicate(timeout=60)
    assert time.monotonic() - start < 20
    assert process.returncode == 130
    assert "are kept" in out and "Run the same command again to go on" in out
    assert "Traceback" not in out and "KeyboardInterrupt" not in out
    tools.wait_until(lambda: not any(worker.is_running() for worker in workers), 20)
    assert len(tools.results(folder)) == tools.trial_lines(folder) >= 2
