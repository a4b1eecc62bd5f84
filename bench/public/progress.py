"""A progress bar for notebooks and scripts: a listener on the events of a run or search."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.execution.events import Done, Event, Finished, Listener, Notice, Planned
from bench.results.summary import accuracies_of, mean_and_spread, ordered_trials
from bench.tuning.events import Searched, Searching, Tried
from bench.tuning.summary import summarize


@contextmanager
def told(progress: bool | None) -> Iterator[list[Listener]]:
    """The listeners of a call: a progress bar on request or, by default, in notebooks; notices become warnings."""
    if not (in_notebook() if progress is None else progress):
        yield [warn_of_notices]
        return
    bar = Bar()
    try:
        yield [bar, warn_of_notices]
    finally:
        bar.close()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


def warn_of_notices(event: Event) -> None:
    if isinstance(event, Notice) and event.warning:
        warnings.warn(event.text, stacklevel=2)


class Bar:
    """Shows the number of finished trials, and the state of the last trial's cell."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Planned):
            self._open(event.plan.size, event.plan.size - len(event.jobs))
        elif isinstance(event, Searching):
            done = sum(min(len(summarize(one.study).trials), one.search.trials) for one in event.studies)
            self._open(sum(one.search.trials for one in event.studies), done)
        elif isinstance(event, Finished):
            accuracies = accuracies_of(ordered_trials(event.state, event.cell.key))
            so_far = f"{100 * mean_and_spread(accuracies)[0]:.1f} % over {len(accuracies)}" if accuracies else ""
            self._advance(f"{event.cell.label}: {so_far if event.record.done else event.record.status}")
        elif isinstance(event, Tried):
            self._advance(event.study.name)
        elif isinstance(event, Done | Searched):
            self.close()

    def _open(self, total: int, done: int) -> None:
        # The graphical bar needs ipywidgets; without it, `tqdm.auto` warns in every notebook.
        if in_notebook() and importlib.util.find_spec("ipywidgets"):
            from tqdm.notebook import tqdm
        else:
            from tqdm.std import tqdm
        self._bar = tqdm(total=total, initial=done, unit="trial", dynamic_ncols=True)

    def _advance(self, text: str) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update()

    def close(self) -> None:
        """Leave the bar in its current state."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
