"""SIGKILL at every step of the way to disk: the ledger opens, holds what was acknowledged once, and the run goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
Attempt = dict[str, Any]
Attempts = dict[str, list[Attempt]]

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="steps are told apart by Linux's /proc")


def killed_everywhere(*jobs: str) -> Attempts:
    """Each job, killed at every step; `before` and `never` are the first two of its attempts."""
    memory = Path("/dev/shm")  # SIGKILL takes nothing from the page cache, so that a disk would only be slower
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as home:
        command = [sys.executable, str(HERE / "crash_jobs.py"), f"{home}/jobs", *jobs]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "BENCH_DATA": f"{home}/data"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: Attempts = defaultdict(list)
    for line in done.stdout.splitlines():
        attempt = json.loads(line)
        found[attempt["job"]].append(attempt)
    return found


@pytest.fixture(scope="module")
def attempts() -> Attempts:
    return killed_everywhere("run", "merge", "archive", "plan cache")


def test_the_run_was_killed_at_every_step_of_the_ledgers_way_to_disk(attempts: Attempts) -> None:
    steps = [attempt["step"] for attempt in attempts["run"]]
    for step in ("open ledger.lock", "flock ledger.lock", "open ledger.jsonl", "ftruncate ledger.jsonl"):
        assert f"before {step}" in steps and f"after {step}" in steps
    for moment in ("before", "half of", "after"):  # the announcement and two trials
        assert steps.count(f"{moment} write ledger.jsonl") == 3
    assert steps.count("after fsync ledger.jsonl") == 3


@pytest.mark.parametrize("job", ["run", "merge"])
def test_every_acknowledged_trial_is_there_once_and_the_next_attempt_ends_as_if_nothing_had_been(
    attempts: Attempts, job: str
) -> None:
    assert_nothing_lost(attempts[job])


@pytest.mark.parametrize("job", ["archive", "plan cache"])
def test_every_file_is_the_old_or_the_new_one(attempts: Attempts, job: str) -> None:
    assert_each_file_whole(attempts[job])


def assert_nothing_lost(attempts: list[Attempt]) -> None:
    before, never, *killed = attempts
    assert before["seen"] == [] and len(never["seen"]) == 2 and len(killed) > 15
    for attempt in killed:
        seen = [trial[:3] for trial in attempt["seen"]]
        assert all(seen.count(trial) == 1 for trial in attempt["acknowledged"]), attempt["step"]
        assert all(trial in never["seen"] for trial in attempt["seen"]), attempt["step"]
        assert attempt["code"] == 0 and attempt["again"] == never["seen"], attempt["step"]
    assert {len(attempt["acknowledged"]) for attempt in killed} >= {0, 2}


def assert_each_file_whole(attempts: list[Attempt]) -> None:
    before, never, *killed = attempts
    assert killed and before["seen"] != never["seen"]
    for attempt in killed:
        for name, content in attempt["seen"].items():
            assert content in (before["seen"].get(name), never["seen"][name]), f"{name} {attempt['step']}"
        assert attempt["seen"].keys() >= before["seen"].keys(), attempt["step"]
        assert attempt["code"] == 0 and attempt["again"] == never["seen"], attempt["step"]


def assert_import_whole(attempts: list[Attempt]) -> None:
    before, never, *killed = attempts
    assert killed and before["seen"] != never["seen"]
    for attempt in killed:
        assert attempt["seen"] in (before["seen"], never["seen"], {}), attempt["step"]
        assert attempt["code"] == 0 and attempt["again"] == never["seen"], attempt["step"]


@pytest.mark.soak
def test_killed_at_every_step_of_every_file() -> None:
    """MLflow's artifacts, each file of the tables, each file of an import, and the making of MLflow's store too."""
    found = killed_everywhere("run, every file", "tables, every file", "import, every file", "store")
    assert_nothing_lost(found["run, every file"])
    assert_each_file_whole(found["tables, every file"])
    assert_import_whole(found["import, every file"])
    before, never, *killed = found["store"]
    assert before["seen"] == [] and never["seen"] == ["mlflow.db"] and killed
    for attempt in killed:
        assert attempt["code"] == 0 and attempt["again"] == ["mlflow.db"], attempt["step"]
    print({job: len(steps) - 2 for job, steps in found.items()})
