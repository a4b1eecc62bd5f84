"""The events of a run, sent to listeners: the ledger, MLflow, a progress bar, a notebook."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.execution.worker import Job
from bench.plan.cells import Cell, Trial
from bench.plan.planner import Plan
from bench.registry import UserError
from bench.results.ledger import LedgerState
from bench.results.records import TrialRecord

CLOSE_SECONDS = 5.0  # for a listener to finish its current work after an interruption


@dataclass(frozen=True)
class Planned:
    """Everything is checked; these trials are about to run. `state` is the ledger's state, which is kept up to date."""

    plan: Plan
    state: LedgerState
    jobs: Sequence[Job]


@dataclass(frozen=True)
class Started:
    """A trial was sent to the workers."""

    cell: Cell
    trial: Trial


@dataclass(frozen=True)
class Finished:
    """A trial has ended, with or without a result; its record is in the ledger."""

    cell: Cell
    record: TrialRecord
    state: LedgerState


@dataclass(frozen=True)
class Notice:
    """Information for the user, in one line."""

    text: str
    warning: bool = True


@dataclass(frozen=True)
class Done:
    """The run has ended."""

    state: LedgerState
    interrupted: bool


Event = Any  # one of the above, or of those in `bench.tuning.events`
Listener = Callable[[Event], None]


@dataclass
class Clock:
    """Measures the time spent on each activity other than training."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def on(self, duty: str) -> Iterator[None]:
        """Add the time of a `with` block to an activity."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[duty] = self.seconds.get(duty, 0.0) + time.perf_counter() - start


class Listeners:
    """Distributes events. A listener that fails is reported once and then skipped; the run does not wait for it.

    The exception is a listener that is `required`, such as the ledger's writer: its errors end the run.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._direct: list[tuple[str | None, Listener, bool]] = []
        self._beside: list[_Beside] = []

    def add(self, listener: Listener, duty: str | None = None, required: bool = False) -> None:
        """Add a listener that is called synchronously, in order of registration; its time is measured as `duty`."""
        self._direct.append((duty, listener, required))

    def add_beside(self, listener: Listener, duty: str) -> None:
        """Add a listener that runs in a thread of its own, because its server may be slow or unreachable."""
        self._beside.append(_Beside(listener, duty, self))

    def emit(self, event: Event) -> None:
        """Send an event to every listener."""
        for entry in list(self._direct):
            duty, listener, required = entry
            try:
                if duty is None:
                    listener(event)
                else:
                    with self.clock.on(duty):
                        listener(event)
            except Exception as error:
                if required:
                    raise
                self._direct.remove(entry)
                self.emit(Notice(_failed(duty or type(listener).__name__, error)))
        if not isinstance(event, Notice):
            for beside in self._beside:
                beside.take(event)

    def close(self, wait: bool) -> None:
        """Stop the threads of listeners: after all their events or, if interrupted, after the current one."""
        for beside in self._beside:
            with self.clock.on(beside.duty):  # what runs beside the trials costs the run this wait alone
                beside.close(wait)
        self._beside.clear()


class _Beside:
    """A listener in a separate thread; it receives all events in order, with a delay."""

    def __init__(self, listener: Listener, duty: str, listeners: Listeners) -> None:
        self.listener, self.duty, self.listeners = listener, duty, listeners
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._dropped = False
        self._thread = threading.Thread(target=self._work, name=duty, daemon=True)
        self._thread.start()

    def take(self, event: Event) -> None:
        self._events.put(event)

    def _work(self) -> None:
        while (event := self._events.get()) is not None:
            if self._dropped:
                continue
            try:
                self.listener(event)
            except Exception as error:
                self._dropped = True
                self.listeners.emit(Notice(_failed(self.duty, error)))

    def close(self, wait: bool) -> None:
        self._dropped |= not wait
        self._events.put(None)
        self._thread.join(None if wait else CLOSE_SECONDS)


def _failed(duty: str, error: Exception) -> str:
    text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
    return f"{duty} failed and is left out for the rest ({' '.join(text.split())[:300]}); no trial is lost"
