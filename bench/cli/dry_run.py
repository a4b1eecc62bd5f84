"""`bench run --dry-run`: what a run would do and how long it would take. Nothing is written to the workspace."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import api
from bench.cli.plan_report import say_what_will_run
from bench.cli.progress import duration, output
from bench.cli.status import method_namer
from bench.execution.local import LocalPool
from bench.execution.pool import Pool, PoolSetup
from bench.execution.precision import Precision, check_precision, columns, expected_jobs
from bench.execution.probe import PROBE_TIMEOUT, probe_trial
from bench.execution.request import RunRequest
from bench.execution.serial import SerialPool
from bench.execution.worker import WorkerSettings
from bench.plan.cells import Cell, Trial
from bench.plan.forecast import Forecast, Hours, predicted
from bench.plan.planner import Plan
from bench.results.ledger import LedgerState, read_state
from bench.results.records import TrialRecord
from bench.results.workspace import Workspace
from bench.words import counted

MOST_PROBES = 4  # processes that probe: each loads torch and some datasets


def preview(request: RunRequest, probe: bool, console: Console | None = None) -> int:
    """Print the plan: cells, trials, finished trials, what cannot run and why, and predicted hours by dataset and
    method.
    """
    console, start = console or output(), time.perf_counter()
    request.check()
    api.check_machine(request)
    plan = api.plan(request, skip_unavailable=True)
    state = read_state(Workspace(request.workspace).ledger, curves=False)
    jobs, forecast = plan.pending(state, request.retry), Forecast.of(state.finished())
    say_what_will_run(plan, state, console)
    if plan.skipped and not request.skip_unavailable:
        console.print("so a run would stop before it starts; --skip-unavailable runs the rest", highlight=False)
    console.print(
        f"{counted(len(jobs), 'trial')} to run; planned in {time.perf_counter() - start:.1f} s", highlight=False
    )
    if request.precision is not None:
        say_precision(plan, state, request.precision, console)
        jobs += expected_jobs(plan, state, request.precision)[0]
    if not jobs:
        return 0
    if probe:
        run_probes({cell.key: cell for cell, _ in jobs}.values(), forecast, request, console)
    hours = predicted(jobs, forecast, method_namer(plan.cells))
    if hours.by_place:
        console.print(hours_table(hours, plan))
    say_total(hours, request, console)
    return 0


def say_precision(plan: Plan, state: LedgerState, wanted: Precision, console: Console) -> None:
    """How many more label draws the recorded widths call for, and the most that are allowed."""
    check_precision(plan)
    found = columns(plan.cells)
    jobs, unknown = expected_jobs(plan, state, wanted)
    beyond = max(0, wanted.most - plan.grid.repeats) * plan.grid.folds
    most = beyond * sum(len(column.cells) for column in found)
    text = f"--precision {wanted.points:g}: about {counted(len(jobs), 'more trial')} by the widths on record, "
    text += f"{most} at most (--max-repeats {wanted.most})"
    if unknown:
        text += f"; {len(unknown)} of {len(found)} columns have no width on record yet and are not in the estimate"
    console.print(text, highlight=False, soft_wrap=True)


def run_probes(cells: Iterable[Cell], forecast: Forecast, request: RunRequest, console: Console) -> None:
    """Short trainings in a local worker for methods without recorded trials."""
    settings = WorkerSettings(str(request.data_root), request.engine, request.device)
    serial = request.executor == "serial"
    kind, jobs = (SerialPool, 1) if serial else (LocalPool, min(request.processes, MOST_PROBES))
    start = time.perf_counter()
    with ExitStack() as stack:
        status = stack.enter_context(console.status("probing"))
        free: queue.SimpleQueue[Pool] = queue.SimpleQueue()  # one pool per thread that probes
        for _ in range(jobs):
            pool = kind(PoolSetup(settings, 1, None, request.trial_timeout or PROBE_TIMEOUT))
            free.put(stack.enter_context(closing(pool)))

        def probe(cell: Cell, trial: Trial) -> TrialRecord:
            pool = free.get()
            try:
                return probe_trial(pool, settings, (cell, trial))
            finally:
                free.put(pool)

        count = forecast.probe(cells, probe, lambda text: status.update(escape(text)), jobs)
    if count:
        took = duration(time.perf_counter() - start)
        console.print(
            f"nothing measured yet for some methods: {counted(count, 'cell')} probed for a few epochs in {took}",
            highlight=False,
        )
    for (dataset, _, augmenter, backbone), reason in forecast.unknown.items():
        text = f"[yellow]the probe of {augmenter} with {backbone} on {dataset} failed: {escape(reason)}[/]"
        console.print(text, highlight=False, soft_wrap=True)


def hours_table(hours: Hours, plan: Plan) -> Table:
    """Methods by dataset, with totals; in minutes if the total is less than an hour."""
    unit, times = ("hours", 1) if hours.total >= 1 else ("minutes", 60)
    methods = list(dict.fromkeys(method for method, _ in hours.by_place))
    datasets = [d for d in dict.fromkeys(cell.dataset for cell in plan.cells) if any(d == x for _, x in hours.by_place)]
    table = Table(title=f"predicted {unit} of one process", header_style="bold")
    table.add_column("method")
    for name in (*datasets, "all"):
        table.add_column(escape(name), justify="right")
    for method in methods:
        found = [hours.by_place.get((method, dataset)) for dataset in datasets]
        row = [None if taken is None else times * taken for taken in found]
        table.add_row(escape(method), *map(_shown, row), _shown(sum(taken for taken in row if taken is not None)))
    table.add_section()
    sums = [times * sum(h for (_, d), h in hours.by_place.items() if d == dataset) for dataset in datasets]
    table.add_row("all", *map(_shown, sums), _shown(times * hours.total))
    return table


def _shown(amount: float | None) -> str:
    return "" if amount is None else f"{amount:.2f}" if amount < 10 else f"{amount:.1f}"


def say_total(hours: Hours, request: RunRequest, console: Console) -> None:
    """The total as wall-clock time, and what it does not include."""
    if hours.by_place:
        where = "one worker" if request.scheduler else f"--jobs {request.processes}"
        workers = 1 if request.scheduler else request.processes
        wall = duration(3600 * hours.total / workers)
        console.print(f"about {wall} with {where}", highlight=False)
    if hours.unknown:
        console.print(
            f"not counted: {counted(hours.unknown, 'trial')} of which nothing is measured yet", highlight=False
        )
