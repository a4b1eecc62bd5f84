"""Where tasks run: one small protocol for this process, local processes, a Dask cluster, or somebody's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bench.execution.worker import WorkerSettings
from bench.plan.cells import Cell
from bench.registry import Registry

EXECUTORS = Registry("executor", "augbench.executors", "bench.execution.pool:Pool")
EXECUTORS.add("local", "bench.execution.local:LocalPool", "worker processes of this machine")
EXECUTORS.add("dask", "bench.execution.dask_cluster:DaskPool", "a Dask cluster: one that is there, or one of its own")
EXECUTORS.add("slurm", "bench.execution.slurm:SlurmPool", "jobs of a Slurm cluster, started for the run")
EXECUTORS.add(
    "serial", "bench.execution.serial:SerialPool", "this process, unprotected: for a debugger, and to see all output"
)


class WorkerLost(Exception):
    """A worker died with its task. Whose fault it was is not known unless the task had the pool to itself.

    `deaths` is how many workers the task has taken with it.
    """

    def __init__(self, reason: str, deaths: int = 1) -> None:
        super().__init__(reason)
        self.deaths = deaths


@dataclass(frozen=True)
class PoolSetup:
    """What a pool is made with."""

    settings: WorkerSettings
    jobs: int  # workers at most, where the pool starts them itself
    scheduler: str | None = None  # address of a cluster that is there already
    timeout: float | None = None  # seconds that a trial may take
    cells: Sequence[Cell] = ()  # what will be asked of the workers, so that they can be checked
    folder: Path = Path()  # the workspace, for logs
    cluster: Mapping[str, str] = field(default_factory=dict)  # of --cluster: how its jobs are started


class Pool(ABC):
    """Some workers. A subclass is constructed with a `PoolSetup`; it costs nothing before the first task if it can.

    A future ends with the function's value, or with `TaskFailed` (the task's own fault, a time limit included),
    `WorkerLost` (its worker died: the caller decides what that means) or `UserError` (the pool cannot go on).
    """

    shares_memory: ClassVar[bool] = False  # whether its workers live on this machine, within --memory
    takes_scheduler: ClassVar[bool] = False
    takes_timeout: ClassVar[bool] = True
    takes_cluster: ClassVar[bool] = False  # whether --cluster says how its workers are started

    @classmethod
    def check_cluster(cls, options: Mapping[str, str]) -> None:
        """Raise `UserError` if `--cluster` cannot be so; most executors have no such options."""
        return

    @abstractmethod
    def __init__(self, setup: PoolSetup) -> None: ...

    @classmethod
    def get_ready(cls) -> None:
        """Begin, beside this process, what takes long: trials will most likely run soon. Most have nothing to do."""
        return

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tasks can be under way at once, at least 1."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        """Have a worker call a function of an importable module."""

    @abstractmethod
    def close(self) -> None:
        """End the workers at once; what they were doing is lost."""


def overdue(seconds: float) -> str:
    """The reason of a trial that the time limit ended."""
    return f"took longer than {seconds:g} s (--trial-timeout); its worker was ended"
