"""What a run shows: one live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.cells import Cell
from bench.ledger import LedgerState, Record
from bench.summary import mean_and_spread, ordered_trials

PLAIN_LINE_EVERY = 10.0  # seconds between lines where there is no terminal


class RunView:
    """Progress of a run: how much is done, which cell the last trial belongs to, its accuracy so far, time left."""

    def __init__(self, console: Console, total: int, done: int = 0) -> None:
        self.console, self.total, self.done, self.failed = console, total, done, 0
        self._start, self._at_start, self._last_line = time.monotonic(), done, 0.0
        self._progress = Progress(
            TextColumn("[bold]trials"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=total, completed=done, left="")

    def __enter__(self) -> RunView:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def finished(self, record: Record, cell: Cell, state: LedgerState) -> None:
        """Account for one trial."""
        self.done += 1
        self.failed += record["status"] != "done"
        text = f"{cell.label}: {self._outcome(record, cell, state)}"
        self._progress.update(self._task, completed=self.done, description=text, left=self.left())
        now = time.monotonic()
        if not self.console.is_terminal and (now - self._last_line > PLAIN_LINE_EVERY or self.done == self.total):
            self._last_line = now
            self.console.print(f"{self.done}/{self.total} trials, {self.left()}, last {text}", highlight=False)

    def _outcome(self, record: Record, cell: Cell, state: LedgerState) -> str:
        if record["status"] != "done":
            return f"{record['status']} ({record['reason']})"
        accuracies = [t["accuracy"] for t in ordered_trials(state, cell.key) if t["status"] == "done"]
        mean, _ = mean_and_spread(accuracies)
        return f"{100 * mean:.1f} % over {len(accuracies)} so far"

    def left(self) -> str:
        """Time left by the pace of this run."""
        run = self.done - self._at_start
        if not run:
            return "time left unknown"
        seconds = (time.monotonic() - self._start) / run * (self.total - self.done)
        return f"{duration(seconds)} left"

    def say(self, text: str) -> None:
        """A line above the progress."""
        self._progress.console.print(text, highlight=False)


def duration(seconds: float) -> str:
    """Seconds in words that fit a line."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
