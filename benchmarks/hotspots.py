"""A profile of the fast engine: the lines of code being executed, sampled every millisecond.

A line that calls torch or compiled code counts for the whole call. Prints percentages and microseconds per epoch, the
longest first.
"""

from __future__ import annotations

import argparse
import linecache
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import FrameType

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.datasets.paths import data_root
from bench.execution.trial import TrialRunner
from bench.learning.fast.engine import FastEngine
from bench.learning.problem import Problem
from bench.plan.cells import Trial
from bench.plan.grids import product
from bench.plan.planner import Planner
from bench.protocol.training import preset
from benchmarks.scripts import call, fit


def sample(problem: Problem, trials: int) -> tuple[Counter[tuple[str, int]], float]:
    """How often each line was observed, and the processor seconds of all trials."""
    met: Counter[tuple[str, int]] = Counter()

    def ask(_: int, frame: FrameType | None) -> None:
        if frame is not None:
            met[frame.f_code.co_filename, frame.f_lineno] += 1

    signal.signal(signal.SIGPROF, ask)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    start = time.process_time()
    for _ in range(trials):
        fit(FastEngine(), problem)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return met, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("method")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--data", type=Path, default=None, help="data root (default: $BENCH_DATA)")
    parser.add_argument("--trials", type=int, default=4, help="the same trial so many times over")
    parser.add_argument("--lines", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, training = data_root(options.data), preset("standard")
    cell = Planner(data, FastEngine.name).cell(product([options.dataset], [options.method], [options.k])[0], training)
    problem, _ = TrialRunner(data, FastEngine()).problem(cell, Trial(0, 0))
    fit(FastEngine(), replace(problem, training=replace(training, epochs=20)))  # imports and caches
    met, seconds = sample(problem, options.trials)
    epoch = 1e6 * seconds / options.trials / training.epochs
    print(f"{cell.label}: {epoch:.0f} microseconds an epoch")
    for (file, line), count in met.most_common(options.lines):
        share = count / met.total()
        code = linecache.getline(file, line).strip()
        print(f"{100 * share:5.1f} % {share * epoch:7.1f}  {Path(file).name}:{line}  {code[:80]}")


if __name__ == "__main__":
    call(main)
