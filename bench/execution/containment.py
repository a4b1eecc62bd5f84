"""Limits the effects of a method's misbehavior to its own trial; used by every executor.

A method is third-party code: it may call `sys.exit`, raise uncatchable exceptions, or warn a million times. In any case
its worker responds with a reason, and each warning reaches the user once.
"""

from __future__ import annotations

import logging
import multiprocessing
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from bench.registry import UserError

MOST_WARNINGS = 20  # distinct warnings that a worker forwards and that a run shows
LONGEST = 500  # characters of a reason or a warning

T = TypeVar("T")
Report = Callable[[str, Any], None]  # a message type and its content, for the driver
_here = threading.local()


class TaskFailed(Exception):
    """A task without a result, through its own fault; the message is recorded."""


def contained(function: Callable[..., T], *payload: Any) -> T:
    """Call a function; anything it raises, except the user's own Ctrl-C, becomes a TaskFailed."""
    try:
        return function(*payload)
    except BaseException as error:
        if users_own(error):
            raise
        raise TaskFailed(ending(error)) from error


def users_own(error: BaseException) -> bool:
    """Whether this is Ctrl-C in the terminal; workers never receive it, so there a method must have raised it."""
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
    """From now on, this thread reports its progress to the driver."""
    _here.report = report


def begin_trial() -> None:
    """Called before each trial of a task, for the time limit."""
    report: Report | None = getattr(_here, "report", None)
    if report is not None:
        report("begin", None)


class WarningFilter:
    """Passes each message once, up to a maximum number."""

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
    """Send this process's warnings, including logged ones, to the driver instead of the terminal."""
    passed_on = WarningFilter(say)

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        passed_on(f"{category.__name__}: {message}")

    class Forward(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            passed_on(record.getMessage())

    warnings.showwarning = show  # type: ignore[assignment]
    logging.getLogger().addHandler(Forward(logging.WARNING))
