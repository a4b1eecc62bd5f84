"""Seconds of one trial with each built-in augmenter, and their ratio to `none`.

Processor seconds rather than wall-clock time, so that other work on the machine has less effect; the median over the
trials. Trials of all methods alternate, after one trial of `none` that is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

from augmenters import AUGMENTERS
from bench.datasets.paths import data_root
from bench.execution.trial import TrialRunner, engines
from bench.plan.cells import Trial
from bench.plan.planner import Planner
from bench.protocol.training import preset
from tables.specs import Coordinate


def measure(dataset: str, names: list[str], options: argparse.Namespace) -> None:
    """Print the table of one dataset."""
    planner, runner = Planner(options.data, "fast"), TrialRunner(options.data, engines()["fast"]())
    cells = {name: planner.cell(Coordinate(dataset, options.k, name), preset("standard")) for name in names}
    taken: dict[str, list[float]] = {name: [] for name in names}
    remarks: dict[str, str | None] = {}
    runner.run([(cells["none"], Trial(0, 0))])
    for fold in range(options.trials):
        for name, cell in cells.items():
            start = time.process_time()
            (record,) = runner.run([(cell, Trial(fold, 0))])
            taken[name].append(time.process_time() - start)
            remarks[name] = record.engine if record.done else f"failed: {record.reason}"
            print(f"{dataset}, {name}: {taken[name][-1]:.2f}", file=sys.stderr)
    base = statistics.median(taken["none"])
    print(f"{dataset}, k = {options.k}: processor seconds per trial, ratio to none, engine")
    for name, seconds in taken.items():
        typical = statistics.median(seconds)
        print(f"{name:24} {typical:7.2f} {typical / base:6.1f} {remarks[name]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="augmenters; default: all that are built in")
    parser.add_argument("--dataset", action="append", help="may be given several times (default: PROTEINS)")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--data", type=Path, default=None, help="data root (default: $BENCH_DATA)")
    options = parser.parse_args()
    options.data = data_root(options.data)
    built_in = [entry.name for entry in AUGMENTERS.entries().values() if entry.origin == "built in"]
    names = ["none", *(name for name in options.names or built_in if name != "none")]
    for dataset in options.dataset or ["PROTEINS"]:
        measure(dataset, names, options)


if __name__ == "__main__":
    main()
