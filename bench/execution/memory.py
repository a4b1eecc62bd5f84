"""The memory limit for all trials together: set by the user, enforced by letting workers wait until a trial fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import psutil

from bench.learning.memory import estimated_peak
from bench.registry import UserError

if TYPE_CHECKING:
    from bench.learning.problem import Problem

GIB = 2**30
UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": GIB, "TIB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9}
DEFAULT_SHARE = 0.8  # of the memory that is free when the run starts
WORKER = GIB // 2  # used by a worker before its first trial: Python, torch, a small dataset


def parse_memory(text: str) -> int:
    """Bytes from `4GiB`, `500 MB` or a plain number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].upper() not in UNITS or not float(found[1]):
        raise UserError(f"--memory {text} is not an amount of memory; write it as 4GiB or 500MB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def memory_budget(text: str | None) -> int:
    """The user's limit, or a share of the memory that is free now."""
    return parse_memory(text) if text else int(DEFAULT_SHARE * psutil.virtual_memory().available)


def workers_within(budget: int, jobs: int) -> int:
    """The number of idle workers that fit into the budget."""
    return max(1, min(jobs, budget // WORKER))


def shown(amount: float) -> str:
    return f"{amount / GIB:.1f} GiB"


class Claims:
    """The memory that the workers of a pool hold or have claimed. Kept by the driver, so a dead worker's share is
    released.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._granted: dict[int, int] = {}  # by worker: what its trial takes in addition to the worker itself
        self._asked: dict[int, int] = {}
        self._workers: set[int] = set()

    @property
    def held(self) -> int:
        return WORKER * len(self._workers) + sum(self._granted.values())

    def join(self, worker: int) -> None:
        self._workers.add(worker)

    def leave(self, worker: int) -> None:
        self._workers.discard(worker)
        self._asked.pop(worker, None)
        self._granted.pop(worker, None)

    def ask(self, worker: int, amount: int) -> None:
        self._asked[worker] = amount

    def give_back(self, worker: int) -> None:
        self._granted.pop(worker, None)

    def grant(self) -> list[int]:
        """The workers whose claims fit now, in order of their requests; their claims are granted."""
        served = []
        for worker, amount in list(self._asked.items()):
            # A trial may always run alone: its own estimate was within the budget.
            if not self._granted or self.held + amount <= self.budget:
                self._granted[worker] = self._asked.pop(worker)
                served.append(worker)
        return served


class Room(Protocol):
    """A worker's connection to its pool's claims."""

    def claim(self, amount: int) -> None:
        """Return when the pool has granted this much memory."""

    def give_back(self) -> None: ...


_ROOM: Room | None = None


def join_claims(room: Room) -> None:
    """Called in each worker at startup."""
    global _ROOM
    _ROOM = room


@contextmanager
def room_for(problem: Problem, budget: int | None, engine: str) -> Iterator[None]:
    """Wait until the trial fits beside those of the other workers; reject one that never will."""
    if budget is None:
        yield
        return
    resident = int(psutil.Process().memory_info().rss)
    needed = estimated_peak(problem, engine)
    if resident + needed > budget:
        raise UserError(
            f"this trial ({len(problem.graphs)} graphs, the largest with "
            f"{max(int(graph.num_nodes or 0) for graph in problem.graphs)} nodes, {type(problem.augmenter).__name__}, "
            f"{problem.backbone or 'no network'}) needs about {shown(resident + needed)}, more than the "
            f"{shown(budget)} of --memory; allow more, or take a smaller k or width"
        )
    more = needed + max(0, resident - WORKER)
    with _claimed(_ROOM, more):
        yield


@contextmanager
def _claimed(room: Room | None, more: int) -> Iterator[None]:
    if room is None:
        yield
        return
    room.claim(more)
    try:
        yield
    finally:
        room.give_back()
