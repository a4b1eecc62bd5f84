"""What a dead worker means, decided once for runs and searches.

A worker may die by what it runs, or by chance: the kernel kills the largest process when memory is short, not the one
that asked for too much. So what a worker had when it died runs again, with the whole pool to itself, once nothing
else is left to do. Only what dies alone twice is a failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bench.execution.containment import TaskFailed
from bench.execution.pool import Pool, WorkerLost

ALONE = 2  # deaths without company that convict

W = TypeVar("W")


@dataclass(frozen=True)
class Failure:
    """Work that has no result, and why."""

    reason: str


@dataclass
class _Sent(Generic[W]):
    work: W
    alone: bool = False
    deaths: int = 0  # while it was alone


class Dispatcher(Generic[W]):
    """Sends work to a pool and gives back what became of each piece, exactly once."""

    def __init__(
        self, pool: Pool, call: Callable[[W], tuple[Any, ...]], parts: Callable[[W], Sequence[W]] = lambda work: [work]
    ) -> None:
        """`call` makes a piece of work into a function and its arguments; `parts` takes it apart, to single out one."""
        self.pool, self.call, self.parts = pool, call, parts
        self._sent: dict[Future[Any], _Sent[W]] = {}
        self._again: deque[W] = deque()  # parts of work that failed as a whole
        self._suspects: deque[_Sent[W]] = deque()

    @property
    def idle(self) -> bool:
        return not (self._sent or self._again or self._suspects)

    def fill(self, more: Callable[[], W | None], most: int) -> None:
        """Send work until `most` is under way, there is no more, or something is finished and should be collected."""
        while len(self._sent) < most and not any(one.alone or future.done() for future, one in self._sent.items()):
            work = self._again.popleft() if self._again else more()
            if work is None:
                break
            self._send(_Sent(work))
        if self._suspects and not self._sent:
            one = self._suspects.popleft()
            one.alone = True
            self._send(one)

    def each(self, more: Callable[[], W | None], most: int) -> Iterator[tuple[W, Any]]:
        """All the work there is, each piece with its result or its `Failure` as it is finished."""
        while True:
            self.fill(more, most)
            if self.idle:
                return
            yield from self.wait()

    def forget(self, unwanted: Callable[[W], bool]) -> None:
        """Drop suspects that nobody waits for any more."""
        self._suspects = deque(one for one in self._suspects if not unwanted(one.work))

    def wait(self, timeout: float | None = None) -> list[tuple[W, Any]]:
        """What is finished, at the latest when the time is up: each piece with its result or its `Failure`."""
        done, _ = wait(self._sent, timeout=timeout, return_when=FIRST_COMPLETED)
        found = []
        for future in [sent for sent in self._sent if sent in done]:  # in the order of sending, whatever the hashes
            one = self._sent.pop(future)
            outcome = self._outcome(one, future)
            if outcome is not None:
                found.append((one.work, outcome[0]))
        return found

    def _send(self, one: _Sent[W]) -> None:
        self._sent[self.pool.submit(*self.call(one.work))] = one

    def _outcome(self, one: _Sent[W], future: Future[Any]) -> tuple[Any] | None:
        """Its result in a tuple, or nothing when it will run again."""
        try:
            return (future.result(),)
        except WorkerLost as error:
            return self._lost(one, error)
        except TaskFailed as error:
            parts = self.parts(one.work)
            if len(parts) > 1:  # the others of its bundle are not to blame
                self._again.extend(parts)
                return None
            return (Failure(str(error)),)

    def _lost(self, one: _Sent[W], error: WorkerLost) -> tuple[Failure] | None:
        if not one.alone:
            self._suspects.extend(_Sent(part) for part in self.parts(one.work))
            return None
        one.deaths += error.deaths
        if one.deaths < ALONE:
            self._suspects.appendleft(one)
            return None
        return (Failure(f"{error}, {one.deaths} times in a row with no other trial beside it"),)
