"""What the death of a worker means; shared by runs and searches.

A worker may die because of its task or by chance: when memory is short, the kernel kills the largest process, not the
one that asked for too much. Tasks whose worker died therefore run again alone, with the whole pool to themselves, once
all other work is done. Only a task whose worker dies twice while it runs alone
counts as failed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bench.execution.containment import TaskFailed
from bench.execution.pool import Pool, WorkerLost

ALONE = 2  # deaths while running alone that count as a failure

W = TypeVar("W")


@dataclass(frozen=True)
class Failure:
    """Work that has no result, and the reason."""

    reason: str


@dataclass
class _Sent(Generic[W]):
    work: W
    alone: bool = False
    deaths: int = 0  # while it ran alone


class Dispatcher(Generic[W]):
    """Sends work to a pool and returns the outcome of each piece exactly once."""

    def __init__(
        self, pool: Pool, call: Callable[[W], tuple[Any, ...]], parts: Callable[[W], Sequence[W]] = lambda work: [work]
    ) -> None:
        """`call` turns a piece of work into a function and its arguments; `parts` splits it, to isolate the one that
        fails.
        """
        self.pool, self.call, self.parts = pool, call, parts
        self._sent: dict[Future[Any], _Sent[W]] = {}
        self._again: deque[W] = deque()  # parts of work that failed as a whole
        self._suspects: deque[_Sent[W]] = deque()

    @property
    def idle(self) -> bool:
        return not (self._sent or self._again or self._suspects)

    def fill(self, more: Callable[[], W | None], most: int) -> None:
        """Send work until `most` tasks are in progress, there is none left, or something has finished."""
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
        """Process all work; yields each piece with its result or its `Failure` as it finishes."""
        while True:
            self.fill(more, most)
            if self.idle:
                return
            yield from self.wait()

    def forget(self, unwanted: Callable[[W], bool]) -> None:
        """Drop suspects that are no longer needed."""
        self._suspects = deque(one for one in self._suspects if not unwanted(one.work))

    def wait(self, timeout: float | None = None) -> list[tuple[W, Any]]:
        """Finished work, waiting at most this long: each piece with its result or its `Failure`."""
        done, _ = wait(self._sent, timeout=timeout, return_when=FIRST_COMPLETED)
        found = []
        for future in [sent for sent in self._sent if sent in done]:  # in the order of sending, independent of hashes
            one = self._sent.pop(future)
            outcome = self._outcome(one, future)
            if outcome is not None:
                found.append((one.work, outcome[0]))
        return found

    def _send(self, one: _Sent[W]) -> None:
        self._sent[self.pool.submit(*self.call(one.work))] = one

    def _outcome(self, one: _Sent[W], future: Future[Any]) -> tuple[Any] | None:
        """The result in a tuple; None if it will run again."""
        try:
            return (future.result(),)
        except WorkerLost as error:
            return self._lost(one, error)
        except TaskFailed as error:
            parts = self.parts(one.work)
            if len(parts) > 1:  # the other parts of its bundle are not at fault
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
