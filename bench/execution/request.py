"""What a run is asked for, as one typed value."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.datasets.paths import data_root
from bench.plan.cells import Cell
from bench.plan.grids import Grid
from bench.plan.identity import DEFAULT_ENGINE
from bench.registry import UserError

if TYPE_CHECKING:
    from bench.execution.pool import Pool, PoolSetup
    from bench.execution.worker import WorkerSettings


@dataclass(frozen=True)
class RunRequest:
    """A grid, and where and how it is to run."""

    grid: Grid
    workspace: Path
    data: Path | None = None
    tracking_uri: str | None = None
    jobs: int | None = None
    executor: str = "local"
    scheduler: str | None = None
    device: str = "cpu"
    engine: str = DEFAULT_ENGINE
    retry: bool = True
    skip_unavailable: bool = False
    tuned: bool = False
    storage: str | None = None
    memory: str | None = None
    trial_timeout: float | None = None
    pooled: bool = False

    def check(self) -> None:
        """What can be said of it without looking at the machine."""
        from bench.execution.memory import parse_memory

        if self.jobs is not None and self.jobs < 1:
            raise UserError(f"--jobs {self.jobs} is not a number of processes; give 1 or more")
        kind = self.pool_kind
        if self.memory and not kind.shares_memory:
            raise UserError(
                f"--memory {self.memory}: workers of the executor {self.executor} have a limit of their own; "
                "leave --memory out"
            )
        if self.memory:
            parse_memory(self.memory)
        if self.storage and not self.tuned:
            raise UserError(f"--storage {self.storage} names the studies of tuned settings; add --tuned")
        if self.pooled and not self.tuned:
            raise UserError("--pooled says which tuned settings to take; add --tuned")
        if self.scheduler and not kind.takes_scheduler:
            raise UserError(f"--scheduler {self.scheduler} is for a Dask cluster; add --executor dask")
        if self.scheduler and self.jobs:
            raise UserError(
                f"--jobs {self.jobs}: a cluster has as many workers as it has; leave --jobs or --scheduler out"
            )
        if self.trial_timeout is not None and not self.trial_timeout > 0:
            raise UserError(f"--trial-timeout {self.trial_timeout:g} leaves no time; give seconds above 0")
        if self.trial_timeout is not None and not kind.takes_timeout:
            raise UserError(
                f"--trial-timeout {self.trial_timeout:g}: the executor {self.executor} cannot end a trial; "
                "leave one of the two out"
            )

    @property
    def pool_kind(self) -> type[Pool]:
        """The class of the executor."""
        from bench.execution.pool import EXECUTORS

        return EXECUTORS.load(self.executor)

    @property
    def processes(self) -> int:
        """One per core unless the user says otherwise."""
        return self.jobs or len(
            os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        )

    @property
    def data_root(self) -> Path:
        return data_root(self.data)

    def worker_settings(self) -> WorkerSettings:
        """What goes with every task; workers of a cluster that is there already have data roots of their own."""
        from bench.execution.memory import memory_budget
        from bench.execution.worker import WorkerSettings

        memory = memory_budget(self.memory) if self.pool_kind.shares_memory else None
        return WorkerSettings(None if self.scheduler else str(self.data_root), self.engine, self.device, memory)

    def pool_setup(self, settings: WorkerSettings, cells: Sequence[Cell]) -> PoolSetup:
        from bench.execution.pool import PoolSetup

        return PoolSetup(settings, self.processes, self.scheduler, self.trial_timeout, cells)
