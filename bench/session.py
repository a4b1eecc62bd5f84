"""What `bench run` does with its options: check everything, run, and show the comparison."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.execution.local import ProcessExecutor, SerialExecutor
from bench.execution.tasks import Executor, WorkerSettings
from bench.grids import Grid
from bench.ledger import Ledger
from bench.paths import data_root
from bench.planning import Plan, Planner
from bench.registry import UserError, unknown
from bench.running import Outcome, run_plan
from bench.status import comparison
from bench.tracking import Mirror
from bench.workspace import Workspace


@dataclass(frozen=True)
class RunRequest:
    """The options of `bench run`, typed."""

    grid: Grid
    workspace: Path
    data: Path | None = None
    tracking_uri: str | None = None
    jobs: int | None = None
    device: str = "cpu"
    engine: str = "reference"
    retry: bool = True
    skip_unavailable: bool = False


def execute(request: RunRequest, console: Console | None = None) -> int:
    """Run a request; the exit code says whether there were failed trials (1) or an interruption (130)."""
    console = console or Console()
    root, workspace = data_root(request.data), Workspace(request.workspace)
    check_machine(request)
    plan = Planner(root, request.engine).plan(request.grid, request.skip_unavailable)
    workspace.prepare()
    with Ledger(workspace.ledger) as ledger:
        mirror = Mirror(request.tracking_uri or workspace.tracking_uri, workspace.artifacts)
        say_what_will_run(plan, console)
        if ledger.cut:
            console.print(f"an unfinished line of {ledger.cut} bytes was cut from the ledger; its trial runs again")
        outcome = run_plan(plan, ledger, mirror, executor_for(request, root, plan), console, request.retry)
        return conclude(plan, outcome, workspace, console)


def check_machine(request: RunRequest) -> None:
    """Device, engine and number of jobs, before anything is written."""
    import torch

    from bench.trials import engines

    if request.engine not in engines():
        raise unknown("engine", request.engine, engines())
    if request.jobs is not None and request.jobs < 1:
        raise UserError(f"--jobs {request.jobs} is not a number of processes; give 1 or more")
    try:
        torch.empty(1, device=request.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"--device {request.device} cannot be used here: {reason}; use --device cpu") from error


def executor_for(request: RunRequest, root: Path, plan: Plan) -> Executor:
    """One process a core, or as many as asked for; this process alone when that is one."""
    settings = WorkerSettings(str(root), request.engine, request.device)
    jobs = request.jobs or len(os.sched_getaffinity(0))
    return SerialExecutor(settings) if jobs == 1 else ProcessExecutor(settings, jobs)


def say_what_will_run(plan: Plan, console: Console) -> None:
    """The size of the plan, and what is not as the paper has it."""
    total = len(plan.cells) * len(plan.trials)
    console.print(f"grid {plan.grid.name}: {len(plan.cells)} cells, {total} trials", highlight=False)
    own = sorted({cell.dataset for cell in plan.cells if cell.splits == "stratified"})
    if own:
        console.print(f"our own stratified folds, not published ones, for: {', '.join(own)}", highlight=False)
    for reason in sorted({skipped.reason for skipped in plan.skipped}):
        count = sum(skipped.reason == reason for skipped in plan.skipped)
        console.print(f"[yellow]skipped {count} cells: {reason}[/]", highlight=False)


def conclude(plan: Plan, outcome: Outcome, workspace: Workspace, console: Console) -> int:
    """The comparison, the problems and what to do next."""
    if outcome.interrupted:
        console.print(
            f"stopped; {outcome.ran} trials of this run are kept. Run the same command again to go on.", highlight=False
        )
        return 130
    console.print(comparison(plan, outcome.state))
    for cell, record in outcome.problems[:20]:
        where = f"{cell.label}, fold {record['fold']}, repeat {record['repeat']}"
        console.print(f"[red]{record['status']}[/] {where}: {record['reason']}", highlight=False)
    if len(outcome.problems) > 20:
        console.print(f"... and {len(outcome.problems) - 20} more; `bench status` has them", highlight=False)
    console.print(f"ledger: {workspace.ledger}   compare runs: bench ui --workspace {workspace.root}", highlight=False)
    return 1 if outcome.problems else 0
