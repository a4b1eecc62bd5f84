"""`bench run` in the terminal: the plan, the progress and the outcome."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape

from bench import api
from bench.cli.progress import RunProgress, duration, output
from bench.cli.status import comparison, handed_over
from bench.execution.request import RunRequest
from bench.results.workspace import Workspace
from bench.words import are, counted, have

LISTED = 20  # failures shown at the end of a run; `bench status` shows all
REASONS = 3  # reasons shown for trials that ran on another engine; `bench status` shows all


def run_and_report(request: RunRequest, console: Console | None = None) -> int:
    """Run a request; the exit code is 1 if trials failed and 130 after an interruption."""
    console = console or output()
    with RunProgress(console) as progress:
        outcome = api.run(request, [progress])
    code = conclude(outcome, console)
    say_engines(outcome, console)
    say_where(Workspace(request.workspace), outcome, console)
    return code


def conclude(outcome: api.RunOutcome, console: Console) -> int:
    """Print the comparison and the problems, or how to resume."""
    if outcome.interrupted:
        console.print(
            f"stopped; {counted(outcome.ran, 'trial')} finished in this run {are(outcome.ran)} kept, "
            f"{outcome.left} {are(outcome.left)} left. "
            "Run the same command again to go on.",
            highlight=False,
            soft_wrap=True,
        )
        return 130
    console.print(comparison(outcome.plan, outcome.state))
    failures = outcome.failures
    if failures:
        lost = f"{counted(len(failures), 'trial')} {have(len(failures))} no result"
        console.print(f"[red]{lost}; running the same command tries again:[/]")
    for cell, record in failures[:LISTED]:
        where = f"{cell.label}, fold {record.fold}, repeat {record.repeat}"
        text = f"[red]{record.status}[/] {escape(where)}: {escape(str(record.reason))}"
        console.print(text, highlight=False, soft_wrap=True)
    if len(failures) > LISTED:
        console.print(f"... and {len(failures) - LISTED} more; `bench status` has them", highlight=False)
    return 1 if failures else 0


def say_engines(outcome: api.RunOutcome, console: Console) -> None:
    """Print one line about the trials of this plan that ran on another engine than requested."""
    wanted = set(outcome.plan.trials)
    records = [
        record
        for cell in outcome.plan.cells
        for trial, record in outcome.state.trials.get(cell.key, {}).items()
        if trial in wanted
    ]
    reasons: Counter[str] = Counter()
    for (_, reason), count in handed_over(records).items():
        reasons[reason] += count
    if reasons:
        done = sum(record.done for record in records)
        words = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(REASONS))
        more = f"; and {len(reasons) - REASONS} more reasons, see `bench status`" if len(reasons) > REASONS else ""
        console.print(
            f"{reasons.total()} of {counted(done, 'trial')} ran on the reference engine: {words}{more}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def say_where(workspace: Workspace, outcome: api.RunOutcome, console: Console) -> None:
    """Print the time spent outside training and where the results are."""
    if outcome.training and not outcome.interrupted:
        overhead = sum(outcome.seconds.values())
        parts = ", ".join(f"{duty} {seconds:.1f} s" for duty, seconds in outcome.seconds.items())
        share = 100 * overhead / outcome.training
        console.print(
            f"{counted(outcome.ran, 'trial')} took {duration(outcome.training)} in sum over workers; "
            f"waiting for {parts} ({share:.1f} %)",
            highlight=False,
            soft_wrap=True,
        )
    console.print(
        f"ledger: {workspace.ledger}   compare runs: bench ui --workspace {workspace.root}",
        highlight=False,
        soft_wrap=True,
    )
