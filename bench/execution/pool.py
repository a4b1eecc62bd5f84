"""Where tasks run: one small protocol for this process, local processes, a Dask cluster, or third-party executors."""

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
    """A worker died with its task. The cause is unknown unless the task had the pool to itself.

    `deaths` is the number of workers that died with this task.
    """

    def __init__(self, reason: str, deaths: int = 1) -> None:
        super().__init__(reason)
        self.deaths = deaths


@dataclass(frozen=True)
class PoolSetup:
    """What a pool is created from."""

    settings: WorkerSettings
    jobs: int  # maximum number of workers, if the pool starts them itself
    scheduler: str | None = None  # address of an existing cluster
    timeout: float | None = None  # time limit of a trial in seconds
    cells: Sequence[Cell] = ()  # the cells that workers will be asked to run, so that they can be checked
    folder: Path = Path()  # the workspace, for logs
    cluster: Mapping[str, str] = field(default_factory=dict)  # the options of --cluster: how its jobs are started


class Pool(ABC):
    """Base class of executors. Constructed with a `PoolSetup`; should cost nothing before the first task.

    A future ends with the function's value, or with `TaskFailed` (the task's own fault, including time limits),
    `WorkerLost` (its worker died; the caller decides what that means) or `UserError` (the pool cannot continue).
    """

    shares_memory: ClassVar[bool] = False  # whether its workers run on this machine, within --memory
    takes_scheduler: ClassVar[bool] = False
    takes_timeout: ClassVar[bool] = True
    takes_cluster: ClassVar[bool] = False  # whether --cluster determines how its workers are started

    @classmethod
    def check_cluster(cls, options: Mapping[str, str]) -> None:
        """Raise `UserError` if the options of `--cluster` are invalid; most executors accept none."""
        return

    @abstractmethod
    def __init__(self, setup: PoolSetup) -> None: ...

    @classmethod
    def get_ready(cls) -> None:
        """Start slow preparations in the background, because trials will probably run soon. Does nothing by default."""
        return

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tasks can run at once, at least 1."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        """Run a function of an importable module on a worker."""

    @abstractmethod
    def close(self) -> None:
        """Stop the workers immediately; their current tasks are lost."""


def overdue(seconds: float) -> str:
    """The reason recorded for a trial that exceeded the time limit."""
    return f"took longer than {seconds:g} s (--trial-timeout); its worker was ended"
