"""Studies on the terminal: how far each is, its best value, and the curve of the best value over the trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.cli.progress import duration
from bench.registry import UserError, show
from bench.tuning.storage import Storage
from bench.tuning.summary import StudyFacts, spark, studies_in

LISTED = 3  # different reasons of failed trials shown for a study; MLflow has one for each trial


def print_studies(storage: Storage, console: Console, only: Sequence[str] | None = None) -> None:
    """One row per study; the best settings of each below."""
    found = [facts for facts in studies_in(storage) if only is None or facts.name in only]
    if not found:
        raise UserError(f"there is no study in {storage.name}; begin one with bench tune")
    table = Table(header_style="bold", title="accuracy on validation graphs in %, mean over folds")
    for column in ("study", "validation"):
        table.add_column(column, overflow="fold")
    for column in ("trials", "given up", "failed", "running", "default", "best", "time"):
        table.add_column(column, justify="right")
    table.add_column("best so far")
    for facts in found:
        table.add_row(*_row(facts))
    console.print(table)
    for facts in found:
        if facts.best is not None:
            settings = ", ".join(f"{name}={show(value)}" for name, value in facts.best.settings.items())
            which = "the defaults" if facts.best.turn == 0 else settings
            console.print(
                f"{facts.name}: trial {facts.best.number}: {which}", markup=False, highlight=False, soft_wrap=True
            )
        reasons = Counter(trial.reason for trial in facts.trials if trial.state == "failed")
        for reason, count in reasons.most_common(LISTED):
            console.print(
                f"{facts.name}: {count} failed: {reason}", style="red", markup=False, highlight=False, soft_wrap=True
            )


def _row(facts: StudyFacts) -> list[str]:
    done, short = len(facts.trials), len(facts.trials) < facts.wanted
    trials = f"{done}/{facts.wanted}"
    failed = facts.count("failed")
    return [
        escape(facts.name),
        facts.facts["validation"],
        f"[yellow]{trials}[/]" if short else trials,
        str(facts.count("given up")),
        f"[red]{failed}[/]" if failed else "0",
        str(facts.running),
        "" if facts.default is None else f"{100 * facts.default:.1f}",
        "" if facts.best is None else f"[bold]{100 * (facts.best.value or 0.0):.1f}[/]",
        duration(facts.seconds),
        spark(facts.curve()),
    ]
