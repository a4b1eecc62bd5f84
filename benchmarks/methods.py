"""Seconds of one trial with each built-in augmenter, and their ratio to `none`.

Processor seconds, not those of the clock, so that other work on the machine disturbs less; the median over the trials.
Trials of all methods take turns, after one of `none` that is not counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from augmenters import AUGMENTERS
from bench.execution.trial import TrialRunner, engines
from bench.plan.cells import Trial
from bench.plan.planner import Planner
from bench.protocol.training import preset
from tables.specs import Coordinate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="augmenters; default: all that are built in")
    parser.add_argument("--dataset", default="PROTEINS")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--data", type=Path, default=os.environ.get("BENCH_DATA"))
    options = parser.parse_args()
    built_in = [entry.name for entry in AUGMENTERS.entries().values() if entry.origin == "built in"]
    names = ["none", *(name for name in options.names or built_in if name != "none")]
    planner, runner = Planner(options.data, "fast"), TrialRunner(options.data, engines()["fast"]())
    cells = {name: planner.cell(Coordinate(options.dataset, options.k, name), preset("standard")) for name in names}
    taken: dict[str, list[float]] = {name: [] for name in names}
    ran_on: dict[str, str | None] = {}
    runner.run([(cells["none"], Trial(0, 0))])
    for fold in range(options.trials):
        for name, cell in cells.items():
            start = time.process_time()
            (record,) = runner.run([(cell, Trial(fold, 0))])
            taken[name].append(time.process_time() - start)
            assert record.done, record.reason
            ran_on[name] = record.engine
            print(f"{name}: {taken[name][-1]:.2f}", file=sys.stderr)
    base = statistics.median(taken["none"])
    print(f"{options.dataset}, k = {options.k}: processor seconds per trial, ratio to none, engine")
    for name, seconds in taken.items():
        typical = statistics.median(seconds)
        print(f"{name:24} {typical:7.2f} {typical / base:6.1f} {ran_on[name]}")


if __name__ == "__main__":
    main()
