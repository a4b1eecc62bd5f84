"""What a search shows: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.cli.progress import PLAIN_LINE_EVERY, duration
from bench.tuning.study import MethodStudy, Turn
from bench.tuning.summary import StudyFacts, summarise


class TuningView:
    """Progress of all studies together, and how the study of the last trial stands."""

    def __init__(self, console: Console, studies: Sequence[MethodStudy]) -> None:
        self.console, self.ran = console, 0
        self.total = sum(study.search.trials for study in studies)
        self.done = self._at_start = sum(min(len(self.summary(s).trials), s.search.trials) for s in studies)
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

    @staticmethod
    def summary(study: MethodStudy) -> StudyFacts:
        return summarise(study.study)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    def __enter__(self) -> TuningView:
        self._start = time.monotonic()
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def finished(self, study: MethodStudy, turn: Turn) -> None:
        """Account for one trial."""
        self.ran += 1
        self.done += 1
        now = time.monotonic()
        quiet = not self.console.is_terminal and now - self._last_line < PLAIN_LINE_EVERY and self.done < self.total
        if quiet:
            return
        self._last_line = now
        facts = self.summary(study)
        best = "no complete trial yet" if facts.best is None else f"best {100 * (facts.best.value or 0.0):.1f} %"
        text = f"last: {study.name}: trial {turn.trial.number}, {best} of {len(facts.trials)}"
        self._progress.update(self._task, completed=self.done, description=text.replace("[", "\\["), left=self.left())
        if not self.console.is_terminal:
            line = f"{self.done}/{self.total} trials, {self.left()}, {text}"
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def left(self) -> str:
        """Time left by the pace of this run."""
        run = self.done - self._at_start
        return f"{duration(self.seconds / run * max(0, self.total - self.done))} left" if run else ""
