"""The pool of a Dask cluster: an existing one, or a local one created for the run.

A separate thread monitors what was sent. A restarted scheduler gets all its tasks again. Dask replaces a worker that
dies, and its task is returned as `WorkerLost`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from bench.execution.containment import TaskFailed, WarningFilter, ending, one_line
from bench.execution.dask_connection import connected, own_cluster, reach
from bench.execution.pool import Pool, PoolSetup, WorkerLost, overdue
from bench.plan.cells import PARTS, Cell
from bench.registry import UserError
from bench.warn_once import warn_once

WORKER_SECONDS = 30  # how long to wait for the first worker of a cluster
RETURN_SECONDS = 120.0  # how long to wait for a scheduler to come back
LOOK_EVERY = 5.0  # seconds between checks of the number of workers
LOST_SECONDS = 60.0  # after this time, a worker of our own cluster that died during startup counts as lost
MOST_REPLACED = 20  # such workers before one finishes a task
RESULT_SECONDS = 10.0  # more than the result of a finished task takes to arrive
PAUSE = 0.05


@dataclass(frozen=True)
class _Call:
    """A task in progress."""

    number: int
    function: Callable[..., Any]
    payload: tuple[Any, ...]
    future: Future[Any] = field(default_factory=Future)


class _SchedulerLost(Exception):
    """The connection to the scheduler broke; all its tasks are lost."""


class DaskPool(Pool):
    """The workers of a Dask cluster; each keeps its datasets between tasks."""

    takes_scheduler = True
    quiet = True  # whether our own workers share the terminal, so that their output is dropped

    def __init__(self, setup: PoolSetup) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise UserError(
                "--executor dask needs the package distributed; install it with pip install 'augbench[cluster]'"
            ) from error
        self.setup, scheduler = setup, setup.scheduler
        self.cluster: Any = None
        self.address = scheduler or "made for this run"
        self._topic = f"augbench-{uuid.uuid4().hex}"
        self._threads, self._looked, self._count = 1, -LOOK_EVERY, 0
        self._missing: dict[Any, float] = {}
        self._replaced = 0
        self._waiting: deque[_Call] = deque()
        self._sent: dict[Any, _Call] = {}
        self._overdue: set[int] = set()
        self._heard = WarningFilter(warn_once)
        self._broken: UserError | None = None
        self._closing = False
        self._lock = threading.Lock()  # between the callers and the monitoring thread
        self._thread: threading.Thread | None = None
        if scheduler is not None:
            reach(scheduler)
        for name in ("distributed", "distributed.client"):  # verbose about lost connections
            logging.getLogger(name).setLevel(logging.CRITICAL)
        if scheduler is None:
            self.cluster = self._start_cluster()
        self.client = connected(Client, self.cluster or scheduler, self.address)
        try:
            self._prepare()
            self._check(setup.cells)
        except BaseException:
            self.close()
            raise

    def _start_cluster(self) -> Any:
        """The cluster of a run that names none."""
        return own_cluster(self.setup.jobs)

    def _prepare(self) -> None:
        """Prepare a new connection."""
        self.client.subscribe_topic(self._topic, self._hear)
        if self.cluster is not None and self.quiet:
            from bench.execution.dask_worker import Quiet

            self.client.register_plugin(Quiet())

    def _check(self, cells: Sequence[Cell]) -> None:
        """Check before the first trial that every worker has the package, the same versions and the datasets."""
        self._wait_for_first()
        self._threads = sum(self.client.nthreads().values())
        from bench.execution.dask_worker import worker_obstacle

        sample = {(cell.dataset, *map(cell.part_label, PARTS)): cell.to_json() for cell in cells}
        try:
            answers: dict[str, str | None] = self.client.run(
                worker_obstacle, self.setup.settings, list(sample.values())
            )
        except ImportError as error:
            raise UserError(
                f"a Dask worker cannot import augbench ({error}); install it on the machines of the workers"
            ) from error
        for worker, obstacle in answers.items():
            if obstacle:
                raise UserError(f"the Dask worker {worker} cannot be used: {obstacle}")

    def _wait_for_first(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise UserError(
                f"the Dask scheduler {self.address} has no worker; start one with "
                f"`dask worker {self.address} --nthreads 1`"
            ) from None

    @property
    def size(self) -> int:
        return max(1, self._threads)

    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        with self._lock:
            self._count += 1
            call = _Call(self._count, function, payload)
            if self._broken is not None:
                call.future.set_exception(self._broken)
                return call.future
            self._waiting.append(call)
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="dask", daemon=True)
            self._thread.start()
        return call.future

    def close(self) -> None:
        self._closing = True
        self.client.close(timeout=2)
        if self.cluster is not None:
            self.cluster.close(timeout=5)
        if self._thread is not None:
            self._thread.join(RESULT_SECONDS)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Handle a message from a worker: a warning, or a trial that exceeds its time limit."""
        message = event[1]
        if "warning" in message:
            self._heard(message["warning"])
        elif "overdue" in message:
            self._overdue.add(message["overdue"])

    def _follow(self) -> None:
        while not self._closing:
            try:
                self._look()
                self._send()
                for sent in list(self._sent):
                    self._judge(sent)
            except _SchedulerLost:
                try:
                    self._take_back()
                    self._come_back()
                except UserError as error:
                    self._break(error)
            except UserError as error:
                self._break(error)
            except Exception as error:
                if not self._closing:
                    self._break(UserError(f"the Dask cluster {self.address} cannot be used: {ending(error)}"))
            time.sleep(PAUSE)

    def _look(self) -> None:
        """Check the scheduler and the number of workers."""
        if self.client.status != "running":
            raise _SchedulerLost
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        try:
            self._looked, self._threads = time.monotonic(), sum(self.client.nthreads().values())
        except OSError as error:
            raise _SchedulerLost from error
        if self.cluster is not None:
            self._replace_lost()
        if not self._threads:
            self._no_worker()

    def _no_worker(self) -> None:
        if self.cluster is None:
            warn_once(f"the Dask scheduler {self.address} has no workers left; the run continues when one joins")

    def _send(self) -> None:
        from bench.execution.dask_worker import run_call

        while self._waiting:
            call = self._waiting[0]
            words = (self._topic, call.number, self.setup.timeout, call.function, call.payload)
            try:  # first in, first out: Dask would otherwise use its own order
                self._sent[self.client.submit(run_call, *words, pure=False, priority=-call.number)] = call
            except OSError as error:
                raise _SchedulerLost from error
            self._waiting.popleft()

    def _judge(self, sent: Any) -> None:
        """The outcome of a call, if it is known."""
        from distributed import KilledWorker

        call = self._sent[sent]
        if call.number in self._overdue:
            del self._sent[sent]
            sent.cancel()  # otherwise Dask would give it to the next worker
            call.future.set_exception(TaskFailed(overdue(self.setup.timeout or 0.0)))
            return
        if not sent.done():
            return
        if sent.status == "cancelled":
            raise _SchedulerLost
        if sent.status == "error":
            error: Exception = sent.exception(timeout=RESULT_SECONDS)
            del self._sent[sent]
            if isinstance(error, KilledWorker):
                call.future.set_exception(self._lost(error))
            else:  # for example, a worker that joined later and lacks a package
                call.future.set_exception(TaskFailed(ending(error)))
            return
        try:
            value = sent.result(timeout=RESULT_SECONDS)
        except (Exception, asyncio.CancelledError) as error:
            if self.client.status != "running" or sent.cancelled():
                raise _SchedulerLost from error
            return  # its worker died before delivering the result: Dask runs it again
        del self._sent[sent]
        self._replaced = 0
        call.future.set_result(value)

    def _lost(self, error: Exception) -> WorkerLost:
        """Dask has retried as often as its scheduler was configured to; ours is configured to try once."""
        reason = "its worker died, most likely out of memory"
        if self.cluster is not None:
            return WorkerLost(reason)
        return WorkerLost(f"{reason} ({one_line(str(error))[:200]})", deaths=2)

    def _replace_lost(self) -> None:
        """Dask restarts a worker that dies, but not one that dies during startup."""
        now, expected = time.monotonic(), self.cluster.worker_spec
        missing = set(expected) - set(self.cluster.workers)
        self._missing = {name: self._missing.get(name, now) for name in missing}
        lost = [name for name, since in self._missing.items() if now - since >= LOST_SECONDS]
        for name in lost:
            del expected[name], self._missing[name]
        reason = (
            "workers of the local Dask cluster died while they started, most likely out of memory; use fewer --jobs"
        )
        self._count_replaced(len(lost), reason)
        if lost:
            self.cluster.scale(self.setup.jobs)

    def _count_replaced(self, lost: int, reason: str) -> None:
        """If this many workers end before one finishes a task, something prevents them from starting."""
        self._replaced += lost
        if self._replaced > MOST_REPLACED:
            raise UserError(
                f"{self._replaced} {reason}; finished trials are kept; run the same command again to resume"
            )

    def _take_back(self) -> None:
        """Nothing that was sent will return; it is sent again first once there is a scheduler."""
        self._waiting.extendleft(reversed(sorted(self._sent.values(), key=lambda call: call.number)))
        self._sent.clear()

    def _come_back(self) -> None:
        """Wait for a lost scheduler; our own scheduler, in this process, does not come back."""
        from distributed import Client

        self.client.close(timeout=2)
        if self.cluster is not None:
            raise self._gone()
        warn_once(f"the Dask scheduler {self.address} is gone; waiting {RETURN_SECONDS:.0f} s for it to come back")
        end = time.monotonic() + RETURN_SECONDS
        while not self._closing:
            try:
                reach(self.address)
                self.client = connected(Client, self.address, self.address)
                self._prepare()
                self._looked = -LOOK_EVERY
                return
            except (UserError, OSError) as error:
                if time.monotonic() > end:
                    raise self._gone() from error
                time.sleep(0.5)

    def _gone(self) -> UserError:
        return UserError(
            f"the Dask scheduler {self.address} is gone; finished trials are kept; run the same command again to resume"
        )

    def _break(self, error: UserError) -> None:
        """No more results will arrive."""
        with self._lock:
            self._broken = error
            calls = [*self._sent.values(), *self._waiting]
            self._waiting.clear()
        self._sent.clear()
        self._closing = True
        for call in calls:
            call.future.set_exception(error)
