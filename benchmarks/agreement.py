"""Test accuracy of both engines over the same trials, for every backbone, readout and augmenter.

Rounding differs between the engines, and training enlarges it, so single trials may end apart; their means may not. The
difference of each pair of means is shown in standard errors of the paired differences.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from augmenters import AUGMENTERS
from bench.cells import Cell, Trial, preset
from bench.grids import product
from bench.paths import data_root
from bench.planning import Planner
from bench.registry import UserError
from bench.trials import TrialRunner, engines
from models import BACKBONES, READOUTS

BEYOND = 2.0  # standard errors; one pair in twenty is expected there by chance alone


def cells(options: argparse.Namespace) -> list[Cell]:
    """Every combination that the protocol allows."""
    planner, training = Planner(options.data, "fast"), replace(preset("paper"), epochs=options.epochs)
    axes = (AUGMENTERS.names(), BACKBONES.names(), READOUTS.names())
    found = []
    for augmenter, backbone, readout in itertools.product(*axes):
        at = product([options.dataset], [augmenter], [options.k], [backbone], [readout])[0]
        if not (backbone == "gat" and AUGMENTERS.create(augmenter).weighted):  # attention refuses edge weights
            found.append(planner.cell(at, training))
    return found


def in_standard_errors(difference: np.ndarray) -> float:
    """Mean over its standard error; 0 where the engines never differ."""
    error = difference.std(ddof=1) / len(difference) ** 0.5
    return float(difference.mean() / error) if error else 0.0


def collect(options: argparse.Namespace, chosen: list[Cell]) -> np.ndarray:
    """Accuracies: trial x cell x (fast, reference). Whole trials only, so that all cells have as many."""
    runners = [TrialRunner(options.data, engines()[name]()) for name in ("fast", "reference")]
    rows: list[list[list[float]]] = []
    end = time.monotonic() + 60 * options.minutes
    for repeat, fold in itertools.product(range(options.repeats), range(10)):
        row = []
        for cell in chosen:
            if time.monotonic() > end:
                return np.array(rows)
            records = [runner.run([(cell, Trial(fold, repeat))])[0] for runner in runners]
            for record in records:
                if record["status"] != "done":
                    raise UserError(f"{cell.label}, fold {fold}: {record['reason']}")
            row.append([record["accuracy"] for record in records])
        rows.append(row)
        print(f"{len(rows)} trials of each", file=sys.stderr, flush=True)
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="data root (default: $BENCH_DATA)")
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("-k", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long with the trials done so far")
    options = parser.parse_args()
    options.data = data_root(options.data)
    torch.set_num_threads(1)
    chosen = cells(options)
    accuracy = collect(options, chosen)
    if len(accuracy) < 2:
        raise UserError(f"--minutes {options.minutes} is too short for two trials of {len(chosen)} cells; give more")
    difference = accuracy[:, :, 0] - accuracy[:, :, 1]
    apart = [in_standard_errors(column) for column in difference.T]
    print("| augmenter | backbone | readout | fast % | reference % | difference in standard errors |")
    print("|---|---|---|---|---|---|")
    for cell, (fast, reference), errors in zip(chosen, 100 * accuracy.mean(axis=0), apart, strict=True):
        names = " | ".join((cell.augmenter.label, cell.backbone.label, cell.readout.label))
        print(f"| {names} | {fast:.1f} | {reference:.1f} | {errors:+.1f} |")
    beyond = sum(abs(errors) > BEYOND for errors in apart)
    print(
        f"\n{len(chosen)} cells of {len(accuracy)} trials; largest difference {max(map(abs, apart)):.1f} standard "
        f"errors, {beyond} cells beyond {BEYOND:g}; {100 * (difference == 0).mean():.1f} % of the trials with the same "
        f"accuracy; means over all {100 * accuracy[..., 0].mean():.2f} and {100 * accuracy[..., 1].mean():.2f} %"
    )


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
