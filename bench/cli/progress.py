"""Progress of a run: a live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from bench.cli.plan_report import say_what_will_run
from bench.execution.events import Done, Event, Finished, Notice, Planned
from bench.plan.cells import Cell
from bench.results.ledger import LedgerState
from bench.results.records import TrialRecord
from bench.results.summary import accuracies_of, mean_and_spread, ordered_trials

PLAIN_LINE_EVERY = 10.0  # seconds between lines without a terminal


def output() -> Console:
    """Standard output, as wide as the terminal, or wide enough for tables if there is none."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=160)


class RunProgress:
    """A run listener: prints the plan, then the progress per dataset and the outcome of the last trial."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.view: TrialBars | None = None

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.view is not None:
            self.view.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned):
            say_what_will_run(event.plan, event.state, self.console)
            self.view = TrialBars(self.console, expected_trials(event))
            self.view.start()
        elif isinstance(event, Finished) and self.view is not None:
            self.view.finished(event.record, event.cell, event.state)
        elif isinstance(event, Notice):
            say_notice(event, self.console)
        elif isinstance(event, Done) and self.view is not None:
            self.view.stop()


def say_notice(notice: Notice, console: Console) -> None:
    style = "yellow" if notice.warning else None
    console.print(notice.text, style=style, markup=False, highlight=False, soft_wrap=True)


def expected_trials(planned: Planned) -> dict[str, tuple[int, int]]:
    """For each dataset: the finished trials, and the total including those to run."""
    plan, wanted = planned.plan, set(planned.plan.trials)
    counts = dict.fromkeys((cell.dataset for cell in plan.cells), (0, 0))
    for cell in plan.cells:
        done, total = counts[cell.dataset]
        here = sum(plan.includes(cell, trial) for trial in planned.state.done(cell.key) & wanted)
        counts[cell.dataset] = (done + here, total + here)
    for cell, _ in planned.jobs:
        done, total = counts[cell.dataset]
        counts[cell.dataset] = (done, total + 1)
    return counts


class TrialBars:
    """Progress bars of a run: per dataset, with the remaining time and the state of the last trial's cell."""

    def __init__(self, console: Console, expected: Mapping[str, tuple[int, int]]) -> None:
        """`expected`: for each dataset, the number of finished trials and the total."""
        self.console, self.failed = console, 0
        self.done = self._at_start = sum(done for done, _ in expected.values())
        self.total = sum(total for _, total in expected.values())
        self._start, self._last_line = time.monotonic(), 0.0
        self._last = Text("waiting for the first trial" if self.done < self.total else "nothing to run", style="dim")
        self._all = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[cyan]{task.fields[left]}[/] [red]{task.fields[failed]}"),
            auto_refresh=False,
        )
        self._each = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(), auto_refresh=False
        )
        width = max(map(len, ("trials", *expected)))
        self._whole = self._all.add_task(
            "trials".ljust(width), total=self.total, completed=self.done, left="", failed=""
        )
        self._tasks = {
            dataset: self._each.add_task(dataset.ljust(width), total=total, completed=done)
            for dataset, (done, total) in expected.items()
        }
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4)

    def _render(self) -> RenderableType:
        return Group(self._all, *([self._each] if len(self._tasks) > 1 else []), self._last)

    def start(self) -> None:
        if self.console.is_terminal:
            self._live.start()

    def stop(self) -> None:
        self._live.stop()

    def finished(self, record: TrialRecord, cell: Cell, state: LedgerState) -> None:
        """Count one finished trial."""
        self.done += 1
        self.failed += not record.done
        text = f"last: {cell.label}: {self._outcome(record, cell, state)}"
        failed = f"{self.failed} failed" if self.failed else ""
        self._all.update(self._whole, completed=self.done, left=self.left(), failed=failed)
        self._each.advance(self._tasks[cell.dataset])
        self._last = Text(text, style="dim", no_wrap=True, overflow="ellipsis")
        now = time.monotonic()
        if not self.console.is_terminal and (now - self._last_line > PLAIN_LINE_EVERY or self.done == self.total):
            self._last_line = now
            parts = [f"{self.done}/{self.total} trials", self.left(), failed, text]
            self.console.print(", ".join(filter(None, parts)), highlight=False, markup=False, soft_wrap=True)

    def _outcome(self, record: TrialRecord, cell: Cell, state: LedgerState) -> str:
        if not record.done:
            return f"{record.status} ({record.reason})"
        accuracies = accuracies_of(ordered_trials(state, cell.key), cell.metric)
        mean, _ = mean_and_spread(accuracies)
        return f"{100 * mean:.1f} % over {len(accuracies)} so far"

    def left(self) -> str:
        """Estimated remaining time at the pace of this run."""
        run = self.done - self._at_start
        if not run:
            return "time left unknown"
        seconds = (time.monotonic() - self._start) / run * (self.total - self.done)
        return f"{duration(seconds)} left"


def duration(seconds: float) -> str:
    """A duration in a few words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
