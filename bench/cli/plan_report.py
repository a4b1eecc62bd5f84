"""A plan in the terminal: its size, what cannot run, and deviations from the paper."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape

from bench.plan.planner import Plan
from bench.results.ledger import LedgerState
from bench.words import counted


def say_what_will_run(plan: Plan, state: LedgerState, console: Console) -> None:
    """Print the size of the plan and its deviations from the paper."""
    done, unable = plan.done(state), len(plan.skipped)
    each = len(plan.trials)
    total = len(plan.cells) + unable
    parts = [f"grid {plan.grid.name}: {counted(total, 'cell')}, {counted(total * each, 'trial')}"]
    parts += [f"{counted(unable, 'cell')} cannot run"] if unable else []
    parts += [f"{counted(plan.size, 'trial')} in shard {plan.shard}"] if plan.shard else []
    parts += [f"{counted(done, 'trial')} done already"] if done else []
    console.print("; ".join(parts), highlight=False)
    own = sorted({cell.dataset for cell in plan.cells if cell.splits == "stratified"})
    if own:
        console.print(f"our own stratified folds, not published ones, for: {', '.join(own)}", highlight=False)
    for reason, count in Counter(plan.handed_over.values()).most_common():
        run = "runs" if count == 1 else "run"
        text = f"{counted(count, 'cell')} {run} on the reference engine, the fast one cannot: {reason}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    say_skipped(plan, console)


def say_skipped(plan: Plan, console: Console) -> None:
    """Print what part of the grid cannot run here, by reason."""
    for reason in dict.fromkeys(skipped.reason for skipped in plan.skipped):
        count = sum(skipped.reason == reason for skipped in plan.skipped)
        console.print(
            f"[yellow]cannot run {counted(count, 'cell')}: {escape(reason)}[/]", highlight=False, soft_wrap=True
        )
