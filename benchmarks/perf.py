"""`make perf`: seconds per trial of the fast engine, the reference engine and a plain PyG loop, in one run.

All three alternate on the same trials. Times are processor seconds, and the fastest of several rounds counts, so that
other processes have little effect on the ratios. Each runs two small numbers of epochs; the difference gives the cost
per epoch, and the remainder is the fixed cost of a trial.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.datasets.paths import data_root
from bench.execution.trial import TrialRunner
from bench.learning.fast.engine import FastEngine
from bench.learning.fast.ops.compiled import compiled, compiled_status
from bench.learning.problem import Engine, Problem
from bench.learning.reference import ReferenceEngine
from bench.plan.cells import Cell, Trial
from bench.plan.forecast import Forecast, predicted
from bench.plan.grids import named_grid, product
from bench.plan.planner import Planner
from bench.protocol.training import preset
from bench.results.ledger import Record
from benchmarks.plain import METHODS as PLAIN_METHODS
from benchmarks.plain import train_plainly
from benchmarks.rows import HEAD, Row, draw_growth, line
from benchmarks.scripts import call, fit
from benchmarks.timing import Side, high_water, matmul_rate

WIDTH, LAYERS = 64, 4
METHODS = ["none", "dropedge", "dropnode", "softedge", "m-mixup", "gdm-unc"]
# Where REDDIT-MULTI-5K is not available: it has 5 classes of 508.5 nodes on average, DD has 2 of 284.3.
REDDIT_AGAINST_DD = (5 * 508.5) / (2 * 284.3)


def trainer(engine: Engine, problem: Problem) -> Callable[[int], object]:
    return lambda epochs: fit(engine, replace(problem, training=replace(problem.training, epochs=epochs)))


def dense_flops(problem: Problem) -> float:
    """Floating-point operations per epoch of the matrix products over all nodes, as a plain loop performs them."""
    nodes, channels = sum(int(graph.num_nodes or 0) for graph in problem.graphs), problem.graphs[0].num_node_features
    return 2.0 * nodes * WIDTH * (2 * channels + 3 * (LAYERS - 1) * WIDTH)


def measure(cell: Cell, runner: TrialRunner, options: argparse.Namespace) -> Row:
    """One cell over a few folds; the fastest round of each fold, averaged over the folds."""
    found: dict[str, list[tuple[float, float]]] = {"fast": [], "reference": [], "plain": []}
    work: list[float] = []
    few, slow, epochs = options.few_epochs, options.slow_epochs, options.epochs
    for fold in range(options.folds):
        problem, _ = runner.problem(cell, Trial(fold, 0))
        work.append(dense_flops(problem))
        sides = {"fast": Side(trainer(FastEngine(), problem), few, options.fast_epochs)}
        if slow:
            sides["reference"] = Side(trainer(ReferenceEngine(), problem), few, slow, options.patience)
            if knows_plainly(cell):
                sides["plain"] = Side(plain_trainer(problem, cell.augmenter.name), few, slow)
        for _ in range(options.rounds):
            options.rate = max(options.rate, matmul_rate())
            for side in sides.values():
                side.take_turn()
        for name, side in sides.items():
            if not side.given_up:
                found[name].append(side.seconds(epochs))
    fast, once = (statistics.fmean(part) for part in zip(*found["fast"], strict=True))
    reference, plain = (
        statistics.fmean(whole for whole, _ in found[side]) if found[side] else None for side in ("reference", "plain")
    )
    flops = statistics.fmean(work) * epochs if knows_plainly(cell) else None
    return Row(cell, fast, once, reference, plain, flops)


def knows_plainly(cell: Cell) -> bool:
    """Whether the plain loop supports this cell's network and method."""
    plain = cell.backbone is not None and cell.backbone.label == "gcn" and cell.training.select == "last"
    return plain and cell.augmenter.name in PLAIN_METHODS


def plain_trainer(problem: Problem, method: str) -> Callable[[int], object]:
    relu = problem.training.head == "relu"
    return lambda epochs: train_plainly(problem.graphs, problem.num_classes, method, epochs, relu=relu)


def itself(flag: str, cell: Cell, options: argparse.Namespace) -> list[str]:
    """The command that runs this script on the cell in another process."""
    spec = [cell.dataset, str(cell.k), cell.augmenter.label, "--backbone", options.backbone]
    return [sys.executable, __file__, flag, *spec, "--data", str(options.data)]


def peak_memory(cell: Cell, options: argparse.Namespace) -> float:
    """Peak memory in MiB of a process that runs one trial of the cell, including Python and torch."""
    command = itself("--peak-memory-of", cell, options)
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def print_peak_memory(options: argparse.Namespace) -> None:
    dataset, k, method = options.peak_memory_of
    cell = cells(options, [dataset], [method], [int(k)])[0]
    problem, _ = TrialRunner(options.data, FastEngine()).problem(cell, Trial(0, 0))
    trainer(FastEngine(), problem)(12)  # enough epochs that unused units are looked for
    print(high_water() / 1024)


def cells(
    options: argparse.Namespace, datasets: Sequence[str], methods: Sequence[str], ks: Sequence[int]
) -> list[Cell]:
    planner = Planner(options.data, FastEngine.name)
    training = replace(preset("standard"), epochs=options.epochs)
    return [planner.cell(at, training) for at in product(datasets, methods, ks, [options.backbone])]


def reading_cells(options: argparse.Namespace) -> list[Cell]:
    """Plain training with a ReLU on the logits, and with the best validation epoch; otherwise as in the rows above."""
    changes = [preset("standard").with_settings(words) for words in ({"head": "relu"}, {"select": "best-val"})]
    plain = cells(options, options.datasets, ["none"], options.k)
    return [replace(cell, training=replace(training, epochs=options.epochs)) for cell in plain for training in changes]


def forecast_hours(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Hours of the whole grid on one core; families without measurements are probed with a few epochs."""
    forecast, runner = Forecast(), TrialRunner(options.data, FastEngine())

    def run(cell: Cell, trial: Trial) -> Record:
        return runner.run([(cell, trial)])[0]

    tests = {}  # the test graphs are the same for every method and k
    for row in rows:
        if row.cell.dataset not in tests:
            short = replace(row.cell, training=replace(row.cell.training, epochs=options.few_epochs))
            tests[row.cell.dataset] = run(short, Trial(0, 0))["seconds"]["evaluate"]
        parts = {"augment": row.once, "train": row.fast - row.once, "evaluate": tests[row.cell.dataset]}
        forecast.learn(row.cell, {"seconds": parts})
    plan = Planner(options.data, FastEngine.name).plan(named_grid("full"), skip_unavailable=True)
    forecast.probe(plan.cells, run, say=lambda text: None)
    jobs = [(cell, trial) for cell in plan.cells for trial in plan.trials]
    hours = predicted(jobs, forecast, lambda cell: cell.augmenter.name)
    dd = sum(spent for (_, dataset), spent in hours.by_place.items() if dataset == "DD")
    missing = sum(skipped.coordinate.dataset == "REDDIT-MULTI-5K" for skipped in plan.skipped)
    present = sum(cell.dataset == "DD" for cell in plan.cells)
    print(f"full on one core, {len(plan.cells)} cells that can run here: {hours.total:.1f} h")
    if missing and present:
        more = dd * REDDIT_AGAINST_DD * missing / present
        print(f"with REDDIT-MULTI-5K ({missing} cells, estimated from DD by their nodes): {hours.total + more:.1f} h")


def two_jobs(cell: Cell, options: argparse.Namespace) -> None:
    """The speedup of two processes on two cores over one."""
    command = itself("--train", cell, options)

    def seconds(count: int) -> float:
        jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        return max(float(job.communicate()[0].split()[-1]) for job in jobs)

    alone, together = seconds(1), seconds(2)
    print(f"two jobs on two cores: {2 * alone / together:.2f} x one ({cell.label})")


def train_some(options: argparse.Namespace, trials: int = 10) -> None:
    dataset, k, method = options.train
    cell = cells(options, [dataset], [method], [int(k)])[0]
    runner = TrialRunner(options.data, FastEngine())
    problems = [runner.problem(cell, Trial(fold, 0))[0] for fold in range(trials)]
    fit(FastEngine(), problems[0])
    start = time.perf_counter()
    for problem in problems:
        fit(FastEngine(), problem)
    print(time.perf_counter() - start)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None, help="data root (default: $BENCH_DATA)")
    parser.add_argument("--datasets", nargs="+", default=["PROTEINS", "NCI1", "IMDB-BINARY", "DD"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--backbone", default="gcn", help="of both engines; the plain loop knows gcn only")
    parser.add_argument("-k", nargs="+", type=int, default=[10])
    parser.add_argument(
        "--growth", nargs="*", type=int, default=[2, 5, 10, 25, 50], help="k of the plot; none: no plot"
    )
    parser.add_argument("--epochs", type=int, default=800)
    parser.add_argument("--few-epochs", type=int, default=4, help="the smaller of the two numbers of epochs measured")
    parser.add_argument("--fast-epochs", type=int, default=404, help="the larger one of the fast engine")
    parser.add_argument("--slow-epochs", type=int, default=54, help="that of the slow sides; 0 leaves them out")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds after which the reference is given up")
    parser.add_argument("--folds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=Path, default=Path("docs/images/performance-growth.svg"))
    parser.add_argument("--no-memory", action="store_true", help="do not start a process per row for its peak memory")
    parser.add_argument("--no-forecast", action="store_true", help="do not predict the hours of the grid `full`")
    parser.add_argument("--peak-memory-of", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--train", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.data, options.rate = data_root(options.data), 0.0
    return options


def main() -> None:
    options = parse()
    torch.set_num_threads(1)
    if options.peak_memory_of:
        return print_peak_memory(options)
    if options.train:
        return train_some(options)
    runner = TrialRunner(options.data, FastEngine())
    print(HEAD)
    rows = []
    for cell in cells(options, options.datasets, options.methods, options.k):
        row = measure(cell, runner, options)
        row.memory = None if options.no_memory else peak_memory(cell, options)
        rows.append(row)
        print(line(row, options.rate), flush=True)
    for cell in reading_cells(options):
        print(line(measure(cell, runner, options), options.rate), flush=True)
    compiled()
    print(f"\n{compiled_status()}")
    print(f"matrix products on this core: {options.rate / 1e9:.0f} GFLOP/s")
    two_jobs(rows[0].cell, options)
    if options.growth:
        options.slow_epochs = 0
        grown = [measure(cell, runner, options) for cell in cells(options, options.datasets, ["none"], options.growth)]
        for row in grown:
            print(f"{row.cell.dataset} k={row.cell.k}: {row.fast:.2f} s, {1000 * row.fast / row.cell.k:.0f} ms per k")
        draw_growth(grown, options.plot)
        rows += grown
    if not options.no_forecast:
        forecast_hours(rows, options)


if __name__ == "__main__":
    call(main)
