"""Progress of a search: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.cli.plan_report import say_skipped
from bench.cli.progress import PLAIN_LINE_EVERY, duration, say_notice
from bench.execution.events import Event, Notice
from bench.plan.cells import TUNED_ON
from bench.plan.planner import Plan
from bench.tuning.events import Searched, Searching, Tried
from bench.tuning.request import TuneRequest
from bench.tuning.storage import Storage
from bench.tuning.study import MethodStudy, Turn
from bench.tuning.summary import summarize
from bench.words import counted


class TuningProgress:
    """A tuning listener: prints the search, then the progress over all studies."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.view: StudyBar | None = None

    def __enter__(self) -> TuningProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.view is not None:
            self.view.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Searching):
            say_what_will_be_searched(event.request, event.plan, event.storage, self.console)
            self.view = StudyBar(self.console, event.studies)
            self.view.start()
        elif isinstance(event, Tried) and self.view is not None:
            self.view.finished(event.study, event.turn)
        elif isinstance(event, Notice):
            say_notice(event, self.console)
        elif isinstance(event, Searched) and self.view is not None:
            self.view.stop()


def say_what_will_be_searched(request: TuneRequest, plan: Plan, storage: Storage, console: Console) -> None:
    """Print the size of the search and what a trial's value is the mean of."""
    grid, search = plan.grid, request.search
    labels = (
        "as many per class as there are labels" if request.validation == "budget" else "the whole part of each fold"
    )
    draws = counted(grid.repeats, "label draw")
    trials, folds = counted(search.trials, "trial"), counted(grid.folds, "fold")
    studies = "1 study" if grid.folds == 1 else f"{grid.folds} studies, one per fold,"
    each = (
        f"1 study of {trials}, each on {folds} x {draws}; {TUNED_ON['pooled']}"
        if request.pooled
        else f"{studies} of {trials}, each on {draws} of that fold"
    )
    most = f"{counted(search.trials * grid.folds * grid.repeats, 'training')} at most"
    console.print(
        f"grid {grid.name}: {counted(len(plan.cells), 'method')}; for each {each} ({most}); "
        f"validation graphs: {labels}; studies in {storage.name}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    say_skipped(plan, console)


class StudyBar:
    """Progress over all studies, and the state of the last trial's study."""

    def __init__(self, console: Console, studies: Sequence[MethodStudy]) -> None:
        self.console = console
        self.total = sum(study.search.trials for study in studies)
        self.done = self._at_start = sum(min(len(summarize(s.study).trials), s.search.trials) for s in studies)
        self._start, self._last_line = time.monotonic(), 0.0
        self._progress = Progress(
            TextColumn("[bold]trials"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[cyan]{task.fields[left]}[/] [dim]{task.description}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=self.total, completed=self.done, left="")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def start(self) -> None:
        self._start = time.monotonic()
        self._progress.start()

    def stop(self) -> None:
        self._progress.stop()

    def finished(self, study: MethodStudy, turn: Turn) -> None:
        """Count one finished trial."""
        self.done += 1
        now = time.monotonic()
        quiet = not self.console.is_terminal and now - self._last_line < PLAIN_LINE_EVERY and self.done < self.total
        if quiet:
            return
        self._last_line = now
        facts = summarize(study.study)
        best = "no complete trial yet" if facts.best is None else f"best {100 * (facts.best.value or 0.0):.1f} %"
        text = f"last: {study.name}: trial {turn.trial.number}, {best} of {len(facts.trials)}"
        self._progress.update(self._task, completed=self.done, description=text.replace("[", "\\["), left=self.left())
        if not self.console.is_terminal:
            line = f"{self.done}/{self.total} trials, {self.left()}, {text}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def left(self) -> str:
        """Estimated remaining time at the pace of this run."""
        run = self.done - self._at_start
        return f"{duration(self.seconds / run * max(0, self.total - self.done))} left" if run else ""
