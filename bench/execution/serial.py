"""The pool that runs tasks in this process: nothing to start, nothing in between, and no protection for the run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from bench.execution.containment import TaskFailed, contained
from bench.execution.pool import Pool, PoolSetup


class SerialPool(Pool):
    """Runs each task immediately. A method that exits ends the run, and there are no time limits."""

    shares_memory = True
    takes_timeout = False

    def __init__(self, setup: PoolSetup) -> None:
        self.setup = setup

    @property
    def size(self) -> int:
        return 1

    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(contained(function, *payload))
        except TaskFailed as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        """Nothing to stop."""
