"""The request of a run, as one typed value."""

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
from bench.plan.sharding import Shard
from bench.registry import UserError

if TYPE_CHECKING:
    from bench.execution.pool import Pool, PoolSetup
    from bench.execution.precision import Precision
    from bench.execution.worker import WorkerSettings


@dataclass(frozen=True)
class RunRequest:
    """A grid, and where and how to run it."""

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
    shard: str | None = None
    cluster: Sequence[str] = ()  # key=value, for an executor that starts cluster jobs
    precision: Precision | None = None  # add label draws until differences are this precise

    def check(self) -> None:
        """Validate what can be validated without looking at the machine."""
        from bench.execution.memory import parse_memory

        check_workers(self.jobs, self.trial_timeout)
        kind = self.pool_kind
        if self.memory and not kind.shares_memory:
            raise UserError(
                f"--memory {self.memory}: the executor {self.executor} sets its own limit per worker; "
                "leave --memory out"
            )
        if self.memory:
            parse_memory(self.memory)
        if self.storage and not self.tuned:
            raise UserError(f"--storage {self.storage} applies only to tuned settings; add --tuned")
        if self.pooled and not self.tuned:
            raise UserError("--pooled applies only to tuned settings; add --tuned")
        if self.scheduler and not kind.takes_scheduler:
            raise UserError(f"--scheduler {self.scheduler} applies only to a Dask cluster; add --executor dask")
        if self.scheduler and self.jobs:
            raise UserError(
                f"--jobs {self.jobs}: the cluster determines the number of workers; leave out --jobs or --scheduler"
            )
        if self.cluster and not kind.takes_cluster:
            raise UserError(f"--cluster {','.join(self.cluster)} applies only to Slurm jobs; add --executor slurm")
        kind.check_cluster(self.cluster_options)
        if self.shard is not None:
            Shard.parse(self.shard)
            if self.precision is not None:
                raise UserError(
                    f"--shard {self.shard}: precision cannot be judged from a part of the trials; leave out "
                    "--precision, merge the ledgers, then run with --precision on the whole grid"
                )
        if self.trial_timeout is not None and not kind.takes_timeout:
            raise UserError(
                f"--trial-timeout {self.trial_timeout:g}: the executor {self.executor} cannot stop a trial; "
                "leave out one of the two"
            )

    @property
    def pool_kind(self) -> type[Pool]:
        """The class of the executor."""
        from bench.execution.pool import EXECUTORS

        return EXECUTORS.load(self.executor)

    @property
    def cluster_options(self) -> dict[str, str]:
        """The options of `--cluster`, by name."""
        options: dict[str, str] = {}
        for item in self.cluster:
            name, equals, value = (part.strip() for part in item.partition("="))
            if not name or not equals or not value or name in options:
                raise UserError(f"--cluster {item} is not key=value; write --cluster partition=gpu,walltime=02:00:00")
            options[name] = value
        return options

    @property
    def processes(self) -> int:
        return processes(self.jobs)

    @property
    def data_root(self) -> Path:
        return data_root(self.data)

    def worker_settings(self) -> WorkerSettings:
        """The settings sent with every task; workers of an existing cluster use their own data roots."""
        from bench.execution.memory import memory_budget
        from bench.execution.worker import WorkerSettings

        memory = memory_budget(self.memory) if self.pool_kind.shares_memory else None
        return WorkerSettings(None if self.scheduler else str(self.data_root), self.engine, self.device, memory)

    def pool_setup(self, settings: WorkerSettings, cells: Sequence[Cell]) -> PoolSetup:
        """What a pool needs to start its workers."""
        from bench.execution.pool import PoolSetup

        return PoolSetup(
            settings,
            self.processes,
            self.scheduler,
            self.trial_timeout,
            cells,
            folder=self.workspace,
            cluster=self.cluster_options,
        )


def check_workers(jobs: int | None, trial_timeout: float | None) -> None:
    """Check the number of worker processes and the time limit."""
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs {jobs} is not a valid number of processes; give 1 or more")
    if trial_timeout is not None and not trial_timeout > 0:
        raise UserError(f"--trial-timeout {trial_timeout:g} leaves no time; give more than 0 seconds")


def processes(jobs: int | None) -> int:
    """One per core unless the user specifies another number."""
    return jobs or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
