"""What `bench run` does with its options: check everything, run, and show the comparison."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench.cli.progress import duration, output
from bench.cli.status import comparison
from bench.datasets.paths import data_root
from bench.execution.driver import Clock, Outcome, Run
from bench.execution.local import ProcessExecutor, SerialExecutor
from bench.execution.memory import memory_budget, parse_memory, shown, workers_within
from bench.execution.worker import Executor, WorkerSettings
from bench.plan.cells import Cell
from bench.plan.grids import Grid
from bench.plan.identity import DEFAULT_ENGINE
from bench.plan.planner import Plan, Planner
from bench.registry import UserError, unknown
from bench.results.ledger import Ledger, LedgerState
from bench.results.workspace import Workspace
from bench.warn_once import warn_once

EXECUTORS = ("local", "dask")
LISTED = 20  # failures shown at the end of a run; `bench status` has them all


@dataclass(frozen=True)
class RunRequest:
    """The options of `bench run`, typed."""

    grid: Grid
    workspace: Path
    data: Path | None = None
    tracking_uri: str | None = None
    jobs: int | None = None
    executor: str = "local"
    scheduler: str | None = None
    device: str = "cpu"
    engine: str = DEFAULT_ENGINE
    retry: bool = True
    skip_unavailable: bool = False
    tuned: bool = False
    storage: str | None = None
    memory: str | None = None
    pooled: bool = False

    def check(self) -> None:
        """What can be said of the options without looking at the machine."""
        if self.jobs is not None and self.jobs < 1:
            raise UserError(f"--jobs {self.jobs} is not a number of processes; give 1 or more")
        if self.executor not in EXECUTORS:
            raise unknown("executor", self.executor, EXECUTORS)
        if self.memory and self.executor == "dask":
            raise UserError(f"--memory {self.memory}: a Dask worker has a limit of its own; leave --memory out")
        if self.memory:
            parse_memory(self.memory)
        if self.storage and not self.tuned:
            raise UserError(f"--storage {self.storage} names the studies of tuned settings; add --tuned")
        if self.pooled and not self.tuned:
            raise UserError("--pooled says which tuned settings to take; add --tuned")
        if self.scheduler and self.executor != "dask":
            raise UserError(f"--scheduler {self.scheduler} is for a Dask cluster; add --executor dask")
        if self.scheduler and self.jobs:
            raise UserError(
                f"--jobs {self.jobs}: a cluster has as many workers as it has; leave --jobs or --scheduler out"
            )

    @property
    def processes(self) -> int:
        """One a core unless the user says otherwise."""
        return self.jobs or len(
            os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        )


def execute(request: RunRequest, console: Console | None = None) -> int:
    """Run a request; the exit code says whether there were failed trials (1) or an interruption (130)."""
    from bench.tracking.cells import Mirror

    console, clock = console or output(), Clock()
    root, workspace = data_root(request.data), Workspace(request.workspace)
    request.check()
    check_machine(request)
    with clock.on("planning"):
        plan = planned(request, root, request.skip_unavailable)
    workspace.prepare()
    with clock.on("MLflow"):  # before the ledger: a server that is down leaves nothing behind
        mirror = Mirror(request.tracking_uri or workspace.tracking_uri, workspace.artifacts)
    with Ledger(workspace.ledger) as ledger:
        say_what_will_run(plan, ledger.state, console)
        if ledger.cut:
            console.print(f"an unfinished line of {ledger.cut} bytes was cut from the ledger; its trial runs again")
        executor = executor_for(request, root, plan.cells)
        outcome = Run(plan, ledger, mirror, executor, console, clock).go(request.retry)
        code = conclude(plan, outcome, ledger.state, console)
    say_where(workspace, outcome, clock, console)
    return code


def planned(request: RunRequest, root: Path, skip_unavailable: bool) -> Plan:
    """The cells of a request; with --tuned, each with the best settings of its study."""
    plan = Planner(root, request.engine, request.device).plan(request.grid, skip_unavailable)
    if not request.tuned:
        return plan
    from bench.tuning.best import tuned_plan
    from bench.tuning.storage import existing_storage

    return tuned_plan(plan, existing_storage(request.storage, Workspace(request.workspace)), request.pooled)


def check_machine(request: RunRequest) -> None:
    """Device and engine, before anything is written; a cluster's devices are its own affair."""
    import torch

    from bench.execution.trial import engines

    if request.engine not in engines():
        raise unknown("engine", request.engine, engines())
    if request.scheduler:
        return
    try:
        torch.empty(1, device=request.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {request.device} cannot be used here: {reason}; use --device cpu") from error


def executor_for(request: RunRequest, root: Path, cells: Sequence[Cell]) -> Executor:
    """Processes of this machine (this one alone when that is enough), or the workers of a cluster."""
    if request.executor == "dask":
        from bench.execution.dask_cluster import DaskExecutor

        cluster = DaskExecutor(cluster_settings(request, root), request.scheduler, request.processes)
        cluster.check(cells)
        return cluster
    settings, jobs = local_workers(request, root)
    return SerialExecutor(settings) if jobs == 1 else ProcessExecutor(settings, jobs)


def cluster_settings(request: RunRequest, root: Path) -> WorkerSettings:
    """Workers of a cluster that is there already have data roots of their own, on machines of their own."""
    return WorkerSettings(None if request.scheduler else str(root), request.engine, request.device)


def local_workers(request: RunRequest, root: Path) -> tuple[WorkerSettings, int]:
    """Settings and number of this machine's worker processes, as many as the memory allows."""
    budget = memory_budget(request.memory)
    jobs = workers_within(budget, request.processes)
    if jobs < request.processes:
        warn_once(f"{jobs} of {request.processes} workers, for {shown(budget)} of memory; --memory allows more")
    return WorkerSettings(str(root), request.engine, request.device, budget), jobs


def say_what_will_run(plan: Plan, state: LedgerState, console: Console) -> None:
    """The size of the plan, and what is not as the paper has it."""
    done, unable = plan.done(state), len(plan.skipped)
    each = len(plan.trials)
    total = len(plan.cells) + unable
    parts = [f"grid {plan.grid.name}: {total} cells, {total * each} trials"]
    parts += [f"{unable} cells cannot run"] if unable else []
    parts += [f"{done} trials done already"] if done else []
    console.print("; ".join(parts), highlight=False)
    own = sorted({cell.dataset for cell in plan.cells if cell.splits == "stratified"})
    if own:
        console.print(f"our own stratified folds, not published ones, for: {', '.join(own)}", highlight=False)
    say_skipped(plan, console)


def say_skipped(plan: Plan, console: Console) -> None:
    """What of the grid cannot run here, by reason."""
    for reason in dict.fromkeys(skipped.reason for skipped in plan.skipped):
        count = sum(skipped.reason == reason for skipped in plan.skipped)
        console.print(f"[yellow]cannot run {count} cells: {escape(reason)}[/]", highlight=False, soft_wrap=True)


def conclude(plan: Plan, outcome: Outcome, state: LedgerState, console: Console) -> int:
    """The comparison and the problems, or how to go on."""
    if outcome.interrupted:
        left = plan.size - plan.done(state)
        console.print(
            f"stopped; the {outcome.ran} trials finished in this run are kept, {left} are left. "
            "Run the same command again to go on.",
            highlight=False,
            soft_wrap=True,
        )
        return 130
    console.print(comparison(plan, state))
    failures = state.failures(plan.cells, plan.trials)
    if failures:
        console.print(f"[red]{len(failures)} trials have no result; running the same command tries them again:[/]")
    for cell, record in failures[:LISTED]:
        where = f"{cell.label}, fold {record.fold}, repeat {record.repeat}"
        text = f"[red]{record.status}[/] {escape(where)}: {escape(str(record.reason))}"
        console.print(text, highlight=False, soft_wrap=True)
    if len(failures) > LISTED:
        console.print(f"... and {len(failures) - LISTED} more; `bench status` has them", highlight=False)
    return 1 if failures else 0


def say_where(workspace: Workspace, outcome: Outcome, clock: Clock, console: Console) -> None:
    """What the run cost beside training, and where its results are."""
    if outcome.training and not outcome.interrupted:
        overhead = sum(clock.seconds.values())
        parts = ", ".join(f"{duty} {seconds:.1f} s" for duty, seconds in clock.seconds.items())
        share = 100 * overhead / outcome.training
        console.print(
            f"{outcome.ran} trials took {duration(outcome.training)} in sum over workers; "
            f"beside that: {parts} ({share:.1f} %)",
            highlight=False,
            soft_wrap=True,
        )
    console.print(
        f"ledger: {workspace.ledger}   compare runs: bench ui --workspace {workspace.root}",
        highlight=False,
        soft_wrap=True,
    )
