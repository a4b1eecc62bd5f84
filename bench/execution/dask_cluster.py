"""The executor for a Dask cluster: one that is there already, or a local one made for the run.

Dask gives a dead worker's tasks to another one; this process alone writes the ledger and MLflow.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.datasets import cheap_info
from bench.datasets.paths import data_root
from bench.execution.dask_connection import connected, reach
from bench.execution.worker import Task, WorkerSettings, failed_record, other_versions, run_task
from bench.plan.cells import PARTS, Cell
from bench.protocol.splits import resolve_splits
from bench.registry import UserError
from bench.results.records import TrialRecord
from bench.warn_once import warn_once

WORKER_SECONDS = 30  # how long a cluster may take to show its first worker
RETURN_SECONDS = 120.0  # how long a scheduler may take to come back
LOOK_EVERY = 5.0  # seconds between looks at how many workers there are
LOST_SECONDS = 60.0  # after which a worker of our own cluster that died while it started does not come any more
MOST_REPLACED = 20  # such workers in one run; then something keeps them from starting
RESULT_SECONDS = 10.0  # more than a finished task's records take to arrive
PAUSE = 0.05


class DaskExecutor:
    """Runs tasks on the workers of a Dask cluster; each keeps its datasets between tasks."""

    def __init__(self, settings: WorkerSettings, scheduler: str | None, jobs: int) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise UserError(
                "--executor dask needs the package distributed; install it with pip install 'augbench[cluster]'"
            ) from error
        self.settings = settings
        self.cluster: Any = None
        self.address = scheduler or "made for this run"
        self._threads, self._looked, self._sent = 1, -LOOK_EVERY, 0
        self._missing: dict[Any, float] = {}
        self._jobs, self._replaced = jobs, 0
        if scheduler is not None:
            reach(scheduler)
        for name in ("distributed", "distributed.client"):  # they tell of lost connections at length; we in one line
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if scheduler is None:
            self.cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        self.client = connected(Client, self.cluster or scheduler, self.address)

    def check(self, cells: Sequence[Cell]) -> None:
        """Whether every worker has the package, the same versions and the datasets; before the first trial."""
        try:
            self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            self.close()
            raise UserError(
                f"the Dask scheduler {self.address} has no worker; start one with "
                f"`dask worker {self.address} --nthreads 1`"
            ) from None
        sample = {(cell.dataset, *map(cell.part_label, PARTS)): cell.to_json() for cell in cells}
        try:
            answers: dict[str, str | None] = self.client.run(worker_obstacle, self.settings, list(sample.values()))
        except ImportError as error:
            self.close()
            raise UserError(f"a Dask worker cannot import augbench ({error}); install it where workers run") from error
        for worker, obstacle in answers.items():
            if obstacle:
                self.close()
                raise UserError(f"the Dask worker {worker} cannot take part: {obstacle}")

    def run(self, tasks: Sequence[Task]) -> Iterator[list[TrialRecord]]:
        """Each task's records as it ends. What a lost scheduler had under way is sent again when it is back."""
        line = _Line(deque(tasks))
        while not line.empty:
            try:
                self._fill(line)
                for future in [future for future in line.sent if future.done()]:
                    records = self._collect(line, future)
                    if records:
                        yield records
                time.sleep(PAUSE)
            except _SchedulerLost:
                line.take_back()
                self._come_back()

    def _fill(self, line: _Line) -> None:
        """Send what the workers can begin soon. More would only make Dask suspect more when one of them dies."""
        if self.client.status != "running":
            raise _SchedulerLost
        try:
            if time.monotonic() - self._looked > LOOK_EVERY:
                self._looked, self._threads = time.monotonic(), sum(self.client.nthreads().values())
                if self.cluster is not None:
                    self._replace_lost()
                elif not self._threads:
                    warn_once(f"the Dask scheduler {self.address} has no worker left; the run goes on when one joins")
            while task := line.next(2 * self._threads):
                # The first tasks first: Dask would else take them in an order of its own.
                self._sent -= 1
                future = self.client.submit(run_task, self.settings, task.to_json(), pure=False, priority=self._sent)
                line.sent[future] = task
        except OSError as error:
            raise _SchedulerLost from error

    def _replace_lost(self) -> None:
        """Dask restarts a worker that dies, but gives it up when it dies while it starts."""
        now, expected = time.monotonic(), self.cluster.worker_spec
        missing = set(expected) - set(self.cluster.workers)
        self._missing = {name: self._missing.get(name, now) for name in missing}
        lost = [name for name, since in self._missing.items() if now - since >= LOST_SECONDS]
        for name in lost:
            del expected[name], self._missing[name]
        self._replaced += len(lost)
        if self._replaced > MOST_REPLACED:
            raise UserError(
                f"{self._replaced} workers of the local Dask cluster died while they started, most likely out of "
                "memory; what was finished is kept, run the same command with fewer --jobs to go on"
            )
        if lost:
            self.cluster.scale(self._jobs)

    def _collect(self, line: _Line, future: Any) -> list[TrialRecord]:
        """The records of a future that is done; none when its trials have to run again."""
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise _SchedulerLost
        if future.status == "error":
            error: Exception = future.exception(timeout=RESULT_SECONDS)
            if isinstance(error, KilledWorker):
                return line.suspect(future, _died(error))
            # Whatever a worker makes of a task (one that joined later and lacks a package, say) is its failure.
            reason = f"its worker could not run it: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            return [failed_record(job, reason) for job in line.sent.pop(future).jobs]
        try:
            records: list[TrialRecord] = future.result(timeout=RESULT_SECONDS)
        except (Exception, asyncio.CancelledError) as error:
            if self.client.status != "running" or future.cancelled():
                raise _SchedulerLost from error
            return []  # its worker died before it handed the result over: Dask runs it again
        del line.sent[future]
        return records

    def _come_back(self) -> None:
        """Wait for a scheduler that was lost; one of our own, in this process, does not come back."""
        from distributed import Client

        self.client.close(timeout=2)
        if self.cluster is not None:
            raise self._gone()
        warn_once(f"the Dask scheduler {self.address} is gone; waiting {RETURN_SECONDS:.0f} s for it to come back")
        end = time.monotonic() + RETURN_SECONDS
        while True:
            try:
                reach(self.address)
                self.client = connected(Client, self.address, self.address)
                self._looked = -LOOK_EVERY
                return
            except UserError as error:
                if time.monotonic() > end:
                    raise self._gone() from error
                time.sleep(0.5)

    def _gone(self) -> UserError:
        return UserError(
            f"the Dask scheduler {self.address} is gone; what was finished is kept, run the same command again to go on"
        )

    def close(self) -> None:
        self.client.close(timeout=2)
        if self.cluster is not None:
            self.cluster.close(timeout=5)


class _SchedulerLost(Exception):
    """The connection to the scheduler broke; everything that was sent to it is lost."""


@dataclass
class _Line:
    """What is still to run: tasks that wait, those that were sent, and trials that are suspected of killing workers.

    Dask suspects every task that a dead worker had, also one that only waited there, and gives it up at the fourth
    time. A suspect has the cluster to itself at the end, so that it is judged for its own deeds alone.
    """

    waiting: deque[Task]
    sent: dict[Any, Task] = field(default_factory=dict)
    suspects: deque[Task] = field(default_factory=deque)
    alone: bool = False

    @property
    def empty(self) -> bool:
        return not (self.waiting or self.sent or self.suspects)

    def next(self, room: int) -> Task | None:
        """A task to send while fewer than `room` are under way."""
        if self.waiting and len(self.sent) < room:
            self.alone = False
            return self.waiting.popleft()
        if self.suspects and not self.waiting and not self.sent:
            self.alone = True
            return self.suspects.popleft()
        return None

    def suspect(self, future: Any, reason: str) -> list[TrialRecord]:
        """A task whose workers died: records of failure if it was alone."""
        task = self.sent.pop(future)
        if self.alone:
            return [failed_record(job, reason) for job in task.jobs]
        self.suspects.extend(task.singles())
        return []

    def take_back(self) -> None:
        """Nothing of what was sent will come."""
        self.waiting.extendleft(reversed(self.sent.values()))
        self.sent.clear()
        self.alone = False


def worker_obstacle(settings: WorkerSettings, cells: list[dict[str, Any]]) -> str | None:
    """Asked of each worker: why it could not run such cells."""
    root = data_root(settings.data_root)
    for cell in map(Cell.from_json, cells):
        reason = other_versions(cell) or _no_data(cell.dataset, cell.splits, root)
        if reason:
            return reason
    return None


def _no_data(dataset: str, splits: str, root: Path) -> str | None:
    if not cheap_info(dataset, root).present:
        return f"{dataset} is not in its data root {root}; set BENCH_DATA where it starts, or fetch the data there"
    try:
        resolve_splits(dataset, splits, root)
    except UserError as error:
        return str(error)
    return None


def _died(error: Exception) -> str:
    return f"its worker died each time ({' '.join(str(error).split())[:200]}), most likely out of memory"
