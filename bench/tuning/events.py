"""The events of a search, sent to listeners; see `bench.execution.events`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.execution.events import Listeners
from bench.plan.planner import Plan
from bench.tuning.request import TuneRequest
from bench.tuning.storage import Storage
from bench.tuning.study import MethodStudy, Turn


@dataclass(frozen=True)
class Searching:
    """Everything is checked; the search begins."""

    request: TuneRequest
    plan: Plan
    storage: Storage
    studies: Sequence[MethodStudy]


@dataclass(frozen=True)
class Tried:
    """A trial of a study has ended; it is in the storage."""

    study: MethodStudy
    turn: Turn


@dataclass(frozen=True)
class Searched:
    """The search has ended."""

    studies: Sequence[MethodStudy]
    interrupted: bool


class Announcer:
    """Converts the tuner's notifications to events."""

    def __init__(self, listeners: Listeners) -> None:
        self.listeners = listeners
        self.ran = 0

    def finished(self, study: MethodStudy, turn: Turn) -> None:
        self.ran += 1
        self.listeners.emit(Tried(study, turn))
