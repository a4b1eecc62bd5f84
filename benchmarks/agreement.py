"""Test accuracy of both engines on the same trials, for every backbone, readout and augmenter.

The engines differ in rounding, and training amplifies this, so single trials may differ; means should not. The
difference of each pair of means is shown in standard errors of the paired differences. Every engine has a workspace
under --workspace; repeat the command to resume it. --compare only evaluates existing results.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from augmenters import AUGMENTERS
from bench.registry import UserError
from bench.results.ledger import LedgerState, read_state
from bench.results.workspace import Workspace
from benchmarks.scripts import call
from models import BACKBONES, READOUTS

BEYOND = 2.0  # standard errors; one pair in twenty is expected beyond this by chance alone
ENGINES = ("fast", "reference")
Cells = dict[tuple[str, str, str], dict[tuple[int, int], float]]


def run(engine: str, options: argparse.Namespace) -> None:
    """Run every combination that the protocol allows; finished ones are skipped."""
    axes = {"--augmenter": AUGMENTERS.names(), "--backbone": BACKBONES.names(), "--readout": READOUTS.names()}
    chosen = [word for flag, names in axes.items() for name in names for word in (flag, name)]
    training = ["--preset", "standard", "--epochs", str(options.epochs), "--repeats", str(options.repeats)]
    where = ["--engine", engine, "--workspace", str(options.workspace / engine)]
    command = ["run", "--dataset", options.dataset, "-k", str(options.k), *chosen, *training, *where]
    start = "from bench.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", start, *command, "--skip-unavailable"], check=False)
    if done.returncode:
        raise UserError(f"the {engine} engine did not get through; its own message is above")


def accuracies(state: LedgerState) -> Cells:
    """Accuracy by fold and repeat of each combination."""
    found: Cells = {}
    for key, trials in state.trials.items():
        cell = state.cell(key)
        name = cell.augmenter.label, cell.backbone.label, cell.readout.label
        if name in found:
            raise UserError(f"{cell.label} was run with two settings; give each setting a --workspace of its own")
        found[name] = {
            (trial.fold, trial.repeat): record["accuracy"]
            for trial, record in trials.items()
            if record["status"] == "done"
        }
    return found


def in_standard_errors(difference: np.ndarray) -> float:
    """Mean divided by its standard error; 0 if the engines never differ."""
    error = difference.std(ddof=1) / len(difference) ** 0.5
    return float(difference.mean() / error) if error else 0.0


def compare(fast: Cells, reference: Cells) -> None:
    """One row for each combination that both engines have, and a summary."""
    rows = []
    print("| augmenter | backbone | readout | trials | fast % | reference % | difference in standard errors |")
    print("|---|---|---|---|---|---|---|")
    for name in sorted(fast.keys() & reference.keys()):
        both = sorted(fast[name].keys() & reference[name].keys())
        if len(both) < 2:
            continue
        pair = 100 * np.array([[cells[name][trial] for trial in both] for cells in (fast, reference)])
        errors = in_standard_errors(pair[0] - pair[1])
        rows.append((pair, errors))
        print(f"| {' | '.join(name)} | {len(both)} | {pair[0].mean():.1f} | {pair[1].mean():.1f} | {errors:+.1f} |")
    if not rows:
        raise UserError("no combination has two trials in both engines yet; run without --compare")
    every = np.concatenate([pair for pair, _ in rows], axis=1)
    apart = np.array([abs(errors) for _, errors in rows])
    counts = [pair.shape[1] for pair, _ in rows]
    print(
        f"\n{len(rows)} cells of {min(counts)} to {max(counts)} trials; largest difference {apart.max():.1f} standard "
        f"errors, {(apart > BEYOND).sum()} cells beyond {BEYOND:g}; {100 * (every[0] == every[1]).mean():.1f} % of the "
        f"trials with the same accuracy; means over all {every[0].mean():.2f} and {every[1].mean():.2f} %, "
        f"difference {in_standard_errors(every[0] - every[1]):+.1f} standard errors"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", type=Path, default=Path("runs/agreement"))
    parser.add_argument("--dataset", default="MUTAG")
    parser.add_argument("-k", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=800)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compare", action="store_true", help="look at what is there; run nothing")
    options = parser.parse_args()
    if not options.compare:
        for engine in ENGINES:
            run(engine, options)
    fast, reference = (
        accuracies(read_state(Workspace(options.workspace / engine).existing().ledger)) for engine in ENGINES
    )
    compare(fast, reference)


if __name__ == "__main__":
    call(main)
