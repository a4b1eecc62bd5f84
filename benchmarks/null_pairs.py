"""Repeated plain training with different initial weights: pairs of runs that differ only by chance.

Writes a CSV file: dataset, k, fold, repeat, init, accuracy. Trials of a fold share test graphs, trials of a fold and
repeat also share labeled graphs; initial weights are drawn anew for each init. Repeat the command to resume it, also
with larger --repeats or --inits.
"""

from __future__ import annotations

import argparse
import csv
import os
from dataclasses import replace
from pathlib import Path

import torch

from bench.execution.trial import TrialRunner, engines
from bench.plan.cells import Cell, Trial
from bench.plan.planner import Planner
from bench.protocol.metrics import accuracy
from bench.protocol.training import preset
from bench.seeding import seed_from
from tables.specs import Coordinate

FIELDS = ("dataset", "k", "fold", "repeat", "init", "accuracy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--datasets", nargs="+", default=["IMDB-BINARY", "PROTEINS"])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--inits", type=int, default=4)
    parser.add_argument("--data", type=Path, default=os.environ.get("BENCH_DATA"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = _known(options.file)
    planner, runner = Planner(options.data), TrialRunner(options.data, engines()["fast"]())
    cells = [planner.cell(Coordinate(name, options.k, "none"), preset("standard")) for name in options.datasets]
    with options.file.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not known:
            writer.writerow(FIELDS)
        for repeat in range(options.repeats):
            for cell in cells:
                for fold in range(options.folds):
                    place = (cell.dataset, cell.k, fold, repeat)
                    left = [init for init in range(options.inits) if (*place, init) not in known]
                    for init, value in zip(left, _accuracies(runner, cell, Trial(fold, repeat), left), strict=True):
                        writer.writerow((*place, init, f"{value:.6f}"))
                    file.flush()


def _known(file: Path) -> set[tuple[str, int, int, int, int]]:
    if not file.exists():
        return set()
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {(row["dataset"], *(int(row[name]) for name in FIELDS[1:5])) for row in rows}  # type: ignore[misc]


def _accuracies(runner: TrialRunner, cell: Cell, trial: Trial, inits: list[int]) -> list[float]:
    """The test accuracy of one trial for several draws of the initial weights."""
    if not inits:
        return []
    problem, test = runner.problem(cell, trial)
    truth = torch.cat([graph.y for graph in test]).numpy()
    problems = [
        replace(problem, init_seed=seed_from("null-pair", cell.dataset, trial.fold, trial.repeat, init))
        for init in inits
    ]
    found = []
    for fitted in runner.engine.fit(problems):
        if isinstance(fitted, Exception):
            raise fitted
        guess = fitted.predictor.probabilities(test).argmax(dim=1).numpy()
        found.append(accuracy(truth, guess))
    return found


if __name__ == "__main__":
    main()
