"""Memory and seconds per trial on a real set of large graphs, by label budget, method and features.

    python benchmarks/reddit.py --data DATA_ROOT                  # REDDIT-MULTI-5K, k = 10 and 50
    python benchmarks/reddit.py --datasets IMDB-BINARY -k 10      # another set

Every row is a process of its own that does what a worker does: it loads the dataset, makes the trial, trains with the
fast engine and evaluates, `--trials` times on the same fold. "First" is what a process pays once, before its first
trial ends, beside the trial itself: the dataset, the fold's features, the test part's matrices. "MiB" is the peak of
the whole process, Python and torch included, shared pages of the dataset too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.datasets.paths import data_root
from bench.registry import UserError
from benchmarks.scripts import call

METHODS = ["none", "dropedge", "dropnode", "softedge", "m-mixup", "g-mixup", "gdm-rand", "gdm-acc", "gdm-unc"]
FEATURES = ["constant", "degree-onehot"]


def one_row(options: argparse.Namespace) -> None:
    """One process: a line of JSON with what was measured."""
    from bench.datasets import load_dataset
    from bench.execution.worker import Task, WorkerSettings, run_task
    from bench.plan.cells import Trial
    from bench.plan.planner import Planner
    from bench.protocol.training import preset
    from benchmarks.timing import high_water
    from tables.specs import Coordinate

    (dataset,), (k,), (method,), (features,) = options.datasets, options.k, options.methods, options.features
    training = preset(options.preset).with_settings({"epochs": options.epochs})
    at = Coordinate(dataset, k, method, options.backbone)
    start = time.perf_counter()
    load_dataset(dataset, options.data)
    loaded = time.perf_counter() - start
    cell = Planner(options.data, "fast").cell(at, training, features=features)
    settings, walls, last = WorkerSettings(str(options.data), "fast"), [], None
    for repeat in range(options.trials):
        start = time.perf_counter()
        last = run_task(settings, Task(((cell, Trial(0, repeat)),)).to_json())[0]
        walls.append(time.perf_counter() - start)
        if not last.done:
            raise UserError(f"{cell.label}: {last.reason}")
    assert last is not None
    found = {"load": loaded, "first": walls[0] - walls[-1], "mib": high_water() / 1024, "engine": last.engine}
    print(json.dumps(found | last.seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=data_root, default=data_root())
    parser.add_argument("--datasets", nargs="+", default=["REDDIT-MULTI-5K"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--features", nargs="+", default=FEATURES)
    parser.add_argument("-k", type=int, nargs="+", default=[10, 50])
    parser.add_argument("--backbone", default="gcn")
    parser.add_argument("--preset", default="standard")
    parser.add_argument("--epochs", type=int, default=800)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)  # this process measures
    options = parser.parse_args()
    if options.row:
        return one_row(options)
    print("| dataset | k | method | features | load s | augment s | train s | evaluate s | first s | MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for dataset in options.datasets:
        for k in options.k:
            for method in options.methods:
                for features in options.features:
                    row(options, dataset, k, method, features)


def row(options: argparse.Namespace, dataset: str, k: int, method: str, features: str) -> None:
    """A line of the table, from a process of its own."""
    words = [sys.executable, __file__, "--row", "--data", str(options.data), "--datasets", dataset, "-k", str(k)]
    words += ["--methods", method, "--features", features, "--backbone", options.backbone]
    words += ["--preset", options.preset, "--epochs", str(options.epochs), "--trials", str(options.trials)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"| {dataset} | {k} | {method} | {features} | {reason} |", flush=True)
        return
    found = json.loads(done.stdout.splitlines()[-1])
    seconds = " | ".join(f"{found.get(name, 0):.2f}" for name in ("load", "augment", "train", "evaluate", "first"))
    print(f"| {dataset} | {k} | {method} | {features} | {seconds} | {found['mib']:.0f} |", flush=True)


if __name__ == "__main__":
    call(main)
