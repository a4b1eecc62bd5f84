"""The cost of giving each trial its own copies of graphs, relative to the trial (800 epochs of GCN, no augmenter).

Usage: python benchmarks/isolation.py PROTEINS IMDB-BINARY NCI1
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from bench.datasets.paths import data_root
from bench.execution.trial import TrialRunner, engines
from bench.learning.isolation import contents_of, own_copy, unlabeled
from bench.plan.cells import Trial
from bench.plan.grids import Grid, product
from bench.plan.planner import Planner
from benchmarks.scripts import call

TIMES = 20


def microseconds(work: Callable[[], Any], times: int = TIMES) -> float:
    """The best of several runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best


def main() -> None:
    torch.set_num_threads(1)
    root = data_root(None)
    runner = TrialRunner(root, engines()["fast"]())
    print(f"{'dataset':<16} {'labeled':>8} {'copies':>10} {'test':>6} {'copies':>10} {'hash':>8} {'trial':>12}  (us)")
    for dataset in sys.argv[1:] or ["PROTEINS"]:
        cell = Planner(root, "fast").plan(Grid("isolation", product([dataset], ["none"], [10]))).cells[0]
        problem, test = runner.problem(cell, Trial(0, 0))
        labeled = microseconds(lambda graphs=problem.graphs: [own_copy(graph) for graph in graphs])
        asked = microseconds(lambda graphs=test: [unlabeled(graph) for graph in graphs])
        hashed = microseconds(lambda graphs=problem.graphs: contents_of(graphs))
        trial = microseconds(lambda cell=cell: runner.run([(cell, Trial(0, 0))]), times=2)
        counts = f"{len(problem.graphs):>8} {labeled:>10.0f} {len(test):>6} {asked:>10.0f} {hashed:>8.0f}"
        print(f"{dataset:<16} {counts} {trial:>12.0f}")


if __name__ == "__main__":
    call(main)
