"""Who scores folds: this process, processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Protocol

from bench.cli.run_session import RunRequest, cluster_settings, local_workers
from bench.execution.local import ProcessExecutor, _deaf_to_interrupts
from bench.execution.worker import WorkerSettings
from bench.plan.cells import Cell
from bench.registry import UserError
from bench.tuning.objective import Score, score


class WorkerLost(Exception):
    """A worker died with its fold; whose fault it was is not known unless it was alone."""


class Pool(Protocol):
    """Some workers."""

    @property
    def size(self) -> int:
        """How many folds can be under way at once."""

    def submit(self, work: dict[str, Any]) -> Future[Score]: ...

    def result(self, future: Future[Score]) -> Score:
        """What became of a fold that is over, or WorkerLost."""

    def close(self) -> None: ...


class SerialPool:
    """Scores here and now."""

    size = 1

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings

    def submit(self, work: dict[str, Any]) -> Future[Score]:
        future: Future[Score] = Future()
        future.set_result(score(self.settings, work))
        return future

    def result(self, future: Future[Score]) -> Score:
        return future.result()

    def close(self) -> None:
        """Nothing runs beside this process."""


class ProcessPool(ProcessExecutor):
    """Processes of this machine, started when the first fold comes; new ones take the place of those that died."""

    @property
    def size(self) -> int:
        return self.jobs

    def submit(self, work: dict[str, Any]) -> Future[Score]:
        pool = self._pools[-1] if self._pools else self._new_pool(self.jobs)
        with _deaf_to_interrupts():
            return pool.submit(score, self.settings, work)

    def result(self, future: Future[Score]) -> Score:
        try:
            return future.result()
        except BrokenProcessPool as error:
            for pool in [pool for pool in self._pools if pool._broken]:
                self._kill(pool)  # the next submission starts new ones
            raise WorkerLost(
                "its worker process died, most likely out of memory; try fewer --jobs or less --memory"
            ) from error


class DaskPool:
    """The workers of a Dask cluster; Dask itself tries another worker when one dies."""

    def __init__(self, settings: WorkerSettings, scheduler: str | None, jobs: int, cells: Sequence[Cell]) -> None:
        from bench.execution.dask_cluster import DaskExecutor

        self.settings = settings
        self.cluster = DaskExecutor(settings, scheduler, jobs)
        self.cluster.check(cells)
        self.size = max(1, sum(self.cluster.client.nthreads().values())) if scheduler else jobs
        self._executor = self.cluster.client.get_executor(pure=False)

    def submit(self, work: dict[str, Any]) -> Future[Score]:
        future: Future[Score] = self._executor.submit(score, self.settings, work)
        return future

    def result(self, future: Future[Score]) -> Score:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            return {"status": "failed", "reason": f"its worker died each time ({' '.join(str(error).split())[:200]})"}
        except (CancelledError, asyncio.CancelledError):
            raise UserError(
                f"the Dask scheduler {self.cluster.address} is gone; what was finished is kept, "
                "run the same command again to go on"
            ) from None

    def close(self) -> None:
        self.cluster.close()


def pool_for(request: RunRequest, root: Path, cells: Sequence[Cell]) -> Pool:
    """The workers that the options of `bench run` mean."""
    if request.executor == "dask":
        return DaskPool(cluster_settings(request, root), request.scheduler, request.processes, cells)
    settings, jobs = local_workers(request, root)
    return SerialPool(settings) if jobs == 1 else ProcessPool(settings, jobs)
