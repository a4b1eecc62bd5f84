"""The same trial wherever it runs: the same accuracy, loss and augmented graphs, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.execution.worker import Task, WorkerSettings, run_task
from bench.plan.cells import Cell, Trial
from bench.plan.planner import Planner
from bench.results.records import CIRCUMSTANCES

Make = Callable[..., Path]
METHODS = ["none", "dropedge", "softedge", "m-mixup", "g-mixup", "gdm-unc", "gdm-acc:encoder=vgsae"]

# What a process of its own does: digests of the graphs that go into training, then the trials as a worker runs them.
PROGRAM = """
import hashlib, json, sys
import numpy as np, torch
from pathlib import Path
from bench.plan.cells import Cell, Trial
from bench.learning.augmentation import generate, make_context
from bench.execution.worker import WorkerSettings, run_task
from bench.execution.trial import TrialRunner, engines
from augmenters.base import GraphAugmenter, generator

given = json.loads(sys.stdin.read())
torch.set_num_threads(given["threads"])
runner = TrialRunner(Path(given["root"]), engines()["fast"]())
digests = []
for item in given["work"]:
    problem, _ = runner.problem(Cell.from_json(item["cell"]), Trial(item["fold"], item["repeat"]))
    augmenter, made = problem.augmenter, list(problem.graphs)
    if isinstance(augmenter, GraphAugmenter):
        made += generate(problem, augmenter, generator(problem.augment_seed), make_context(problem))
    digest = hashlib.blake2b(digest_size=16)
    for graph in made:
        for name, value in sorted(graph.to_dict().items()):
            if torch.is_tensor(value):
                digest.update(name.encode() + str(value.dtype).encode() + np.ascontiguousarray(value).tobytes())
    digests.append(digest.hexdigest())
assert torch.get_num_threads() == given["threads"]
records = []
for item in [given["work"]] if given["together"] else [[item] for item in given["work"]]:
    records += [record.to_json() for record in run_task(WorkerSettings(given["root"], "fast"), item)]
print(json.dumps({"graphs": digests, "records": records}))
"""


def jobs(root: Path, dataset: str, methods: list[str], epochs: int, tools: ModuleType) -> list[tuple[Cell, Trial]]:
    """One trial of each method: fold 1, the second label draw."""
    grid = tools.grid(methods, k=[3], folds=2, repeats=2, epochs=epochs, datasets=[dataset])
    return [(cell, Trial(1, 1)) for cell in Planner(root, "fast").plan(grid).cells]


def elsewhere(root: Path, work: list[dict[str, Any]], threads: int = 1, together: bool = True) -> dict[str, Any]:
    """The trials in a fresh process with that many threads."""
    given = json.dumps({"root": str(root), "work": work, "threads": threads, "together": together})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=given,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONHASHSEED": str(threads)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return {"graphs": found["graphs"], "records": timeless(found["records"])}


def timeless(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = [{name: value for name, value in record.items() if name not in CIRCUMSTANCES} for record in records]
    assert {record["status"] for record in kept} == {"done"}, kept
    return sorted(kept, key=lambda record: record["cell"])


def check_everywhere(root: Path, dataset: str, methods: list[str], epochs: int, tools: ModuleType, dask: bool) -> None:
    every = jobs(root, dataset, methods, epochs, tools)
    work = Task(tuple(every)).to_json()
    alone = elsewhere(root, work, together=False)
    assert len(alone["records"]) == len(methods)
    assert len(set(alone["graphs"])) >= len(methods) - 1, (
        "each method makes graphs of its own, but for two that make none"
    )
    assert elsewhere(root, work, threads=2) == alone, "packed with others, two threads, another hash seed"
    backwards = [run_task(WorkerSettings(str(root), "fast"), [item])[0] for item in reversed(work)]
    assert timeless([record.to_json() for record in backwards]) == alone["records"], (
        "in a process that has done other things, in another order"
    )
    if dask:
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address=None) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            sent = [client.submit(run_task, WorkerSettings(str(root), "fast"), [item], pure=False) for item in work]
            assert timeless([record.to_json() for future in sent for record in future.result()]) == alone["records"]


def test_a_trial_is_the_same_wherever_it_runs(tmp_path: Path, tools: ModuleType) -> None:
    check_everywhere(tmp_path, "synthetic:graphs=60", METHODS, 20, tools, dask=True)


@pytest.mark.soak
@pytest.mark.parametrize("dataset", ["PROTEINS", "DD", "IMDB-BINARY"])
def test_a_trial_on_real_data_is_the_same_wherever_it_runs(dataset: str, data_root: Path, tools: ModuleType) -> None:
    check_everywhere(data_root, dataset, METHODS, 50, tools, dask=True)


def test_a_trial_after_a_resume_is_the_one_that_was_interrupted(
    workspace: Make, tools: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle of methods that share an auto-encoder, of which a part is done already."""
    whole, resumed = workspace("whole"), workspace("resumed")
    both = tools.grid(["gdm-unc", "gdm-acc", "dropedge"], epochs=10)
    assert tools.run(both, whole)[0] == 0
    assert tools.run(tools.grid(["gdm-acc"], epochs=10), resumed)[0] == 0
    assert tools.run(both, resumed)[0] == 0
    assert tools.results(resumed) == tools.results(whole)
