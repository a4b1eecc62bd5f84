"""What happens in a search, as values that listeners are told; see `bench.execution.events`."""

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
    """A trial of a study is over; the storage has it."""

    study: MethodStudy
    turn: Turn


@dataclass(frozen=True)
class Searched:
    """Nothing runs any more."""

    studies: Sequence[MethodStudy]
    interrupted: bool


class Announcer:
    """Tells the listeners what the tuner tells its watchers."""

    def __init__(self, listeners: Listeners) -> None:
        self.listeners = listeners
        self.ran = 0

    def finished(self, study: MethodStudy, turn: Turn) -> None:
        self.ran += 1
        self.listeners.emit(Tried(study, turn))
