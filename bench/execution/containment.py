"""What keeps a method's misdeeds within its own trial; used where trials run, by every executor.

A method is somebody else's code: it may call `sys.exit`, raise what nobody catches, or warn a million times. Whatever
it does, its worker answers with a reason, and its warnings reach the user once each.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from bench.registry import UserError

MOST_WARNINGS = 20  # different ones that a worker passes on, and that a run shows
LONGEST = 500  # characters of a reason or a warning

T = TypeVar("T")
Report = Callable[[str, Any], None]  # a kind of message and its content, for the driver
_here = threading.local()


class TaskFailed(Exception):
    """A task that has no result through a fault of its own, in words for the record."""


def contained(function: Callable[..., T], *payload: Any) -> T:
    """Call a function; whatever it raises, except the user's own Ctrl-C, becomes a TaskFailed."""
    try:
        return function(*payload)
    except BaseException as error:
        if users_own(error):
            raise
        raise TaskFailed(ending(error)) from error


def users_own(error: BaseException) -> bool:
    """Whether this is Ctrl-C at the terminal; workers never see it, so there it is a method's doing."""
    in_driver = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    return isinstance(error, KeyboardInterrupt) and in_driver


def ending(error: BaseException) -> str:
    """Why a task has no result, in one line."""
    text = one_line(str(error))
    if isinstance(error, TaskFailed | UserError):
        return text
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, Exception):
        return f"its worker could not run it: {named}"
    return f"{named}; a method must return or raise an Exception, not end its process"


def one_line(text: str) -> str:
    return " ".join(text.split())[:LONGEST]


def report_to(report: Report | None) -> None:
    """From now on, this thread tells its driver what it is doing."""
    _here.report = report


def begin_trial() -> None:
    """Told before each trial of a task, for the time limit."""
    report: Report | None = getattr(_here, "report", None)
    if report is not None:
        report("begin", None)


class WarningFilter:
    """Lets each message through once, and not more than some."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        text = one_line(text)
        if text in self._said or len(self._said) > MOST_WARNINGS:
            return
        self._said.add(text)
        if len(self._said) > MOST_WARNINGS:
            text = f"more than {MOST_WARNINGS} different warnings from a method or a library; no more are shown"
        self.say(text)


def forward_warnings(say: Callable[[str], None]) -> None:
    """Send this process's warnings, also those that are logged, to the driver instead of the terminal."""
    passed_on = WarningFilter(say)

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        passed_on(f"{category.__name__}: {message}")

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            passed_on(record.getMessage())

    warnings.showwarning = show  # type: ignore[assignment]
    logging.getLogger().addHandler(Forward(logging.WARNING))
