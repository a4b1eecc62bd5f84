"""How much memory trials may take together: what the user allows, and workers that wait until a trial fits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING

import psutil

from bench.learning.memory import estimated_peak
from bench.registry import UserError

if TYPE_CHECKING:
    from bench.learning.problem import Problem

GIB = 2**30
UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": GIB, "TIB": 2**40, "KB": 10**3, "MB": 10**6, "GB": 10**9}
DEFAULT_SHARE = 0.8  # of what is free when the run starts
WORKER = GIB // 2  # what a worker holds before its first trial: Python, torch, a small dataset


def parse_memory(text: str) -> int:
    """Bytes from `4GiB`, `500 MB` or a plain number of bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if not found or found[2].upper() not in UNITS or not float(found[1]):
        raise UserError(f"--memory {text} is not an amount of memory; write it as 4GiB or 500MB")
    return int(float(found[1]) * UNITS[found[2].upper()])


def memory_budget(text: str | None) -> int:
    """What the user allows, else a share of what is free now."""
    return parse_memory(text) if text else int(DEFAULT_SHARE * psutil.virtual_memory().available)


def workers_within(budget: int, jobs: int) -> int:
    """So many worker processes as the budget can hold at rest."""
    return max(1, min(jobs, budget // WORKER))


def shown(amount: float) -> str:
    return f"{amount / GIB:.1f} GiB"


class Claims:
    """What the workers of one pool hold or are about to hold, known to all of them."""

    def __init__(self, budget: int, context: SpawnContext) -> None:
        self.budget = budget
        self.held, self.training = context.Value("q", 0, lock=False), context.Value("i", 0, lock=False)
        self.changed = context.Condition()

    def move(self, amount: int, training: int = 0) -> None:
        self.held.value += amount
        self.training.value += training

    def fits(self, more: int) -> bool:
        """A trial may always train where no other does: its own estimate was within the budget."""
        return not self.training.value or self.held.value + more <= self.budget


_CLAIMS: Claims | None = None


def join_claims(claims: Claims) -> None:
    """Called in each worker as it starts."""
    global _CLAIMS
    _CLAIMS = claims
    with claims.changed:
        claims.move(WORKER)


@contextmanager
def room_for(problem: Problem, budget: int | None, engine: str) -> Iterator[None]:
    """Wait until the trial fits beside those of the other workers; one that never will is refused."""
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
    with _claimed(_CLAIMS, more):
        yield


@contextmanager
def _claimed(claims: Claims | None, more: int) -> Iterator[None]:
    if claims is None:
        yield
        return
    with claims.changed:
        claims.changed.wait_for(lambda: claims.fits(more))
        claims.move(more, training=1)
    try:
        yield
    finally:
        with claims.changed:
            claims.move(-more, training=-1)
            claims.changed.notify_all()
