"""The pool of this process alone: nothing to start and nothing in between, and nothing that protects the run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from bench.execution.containment import TaskFailed, contained
from bench.execution.pool import Pool, PoolSetup


class SerialPool(Pool):
    """Runs each task here and now. A method that ends its process ends the run, and none can be timed out."""

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
        """Nothing runs beside this process."""
