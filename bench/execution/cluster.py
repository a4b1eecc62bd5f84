"""The executor for a Dask cluster: one that is there already, or a local one made for the run.

Dask gives a dead worker's tasks to another one; this process alone writes the ledger and MLflow.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.cells import Cell
from bench.datasets import cheap_info
from bench.execution.tasks import Task, WorkerSettings, failed_record, other_versions, run_task
from bench.ledger import Record
from bench.notices import say_once
from bench.paths import data_root
from bench.registry import UserError
from bench.splits import resolve_splits

CONNECT_SECONDS = 10
WORKER_SECONDS = 30  # how long a cluster may take to show its first worker
LOOK_EVERY = 5.0  # seconds between looks at whether there are workers at all


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
        if scheduler is not None:
            _reach(scheduler)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells of lost connections at length; so do we
        if scheduler is None:
            self.cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            )
        self.client = _connected(Client, self.cluster or scheduler, self.address)

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
        sample = {(cell.dataset, cell.augmenter.name, cell.backbone.name): cell.to_json() for cell in cells}
        try:
            answers: dict[str, str | None] = self.client.run(worker_obstacle, self.settings, list(sample.values()))
        except ImportError as error:
            self.close()
            raise UserError(f"a Dask worker cannot import augbench ({error}); install it where workers run") from error
        for worker, obstacle in answers.items():
            if obstacle:
                self.close()
                raise UserError(f"the Dask worker {worker} cannot take part: {obstacle}")

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Record]]:
        from distributed import CancelledError, KilledWorker, as_completed

        # The first tasks first: Dask would else take them in an order of its own.
        running = {self._submit(task, -place): task for place, task in enumerate(tasks)}
        completed = as_completed(list(running), loop=self.client.loop)
        looked = time.monotonic()
        while not completed.is_empty():
            ready = completed.next_batch(block=False)
            for future in ready:
                task = running.pop(future)
                try:
                    yield future.result()
                except KilledWorker as error:
                    if len(task.jobs) > 1:  # find out which of them it was
                        again = {self._submit(single): single for single in task.singles()}
                        running |= again
                        completed.update(list(again))
                    else:
                        yield [failed_record(job, _died(error)) for job in task.jobs]
                except (CancelledError, asyncio.CancelledError):
                    raise self._gone() from None
                except Exception as error:
                    # Whatever a worker makes of a task (one that joined later and lacks a package, say) is its failure.
                    if self.client.status != "running":
                        raise self._gone() from error
                    reason = (
                        f"its worker could not run it: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
                    )
                    yield [failed_record(job, reason) for job in task.jobs]
            if not ready:
                time.sleep(0.05)
            if time.monotonic() - looked > LOOK_EVERY:
                looked = time.monotonic()
                self._look_for_workers()

    def _gone(self) -> UserError:
        return UserError(
            f"the Dask scheduler {self.address} is gone; what was finished is kept, run the same command again to go on"
        )

    def _submit(self, task: Task, priority: int = 0) -> Any:
        return self.client.submit(run_task, self.settings, task.to_json(), pure=False, priority=priority)

    def _look_for_workers(self) -> None:
        if self.client.status == "running" and not self.client.nthreads():
            say_once(f"the Dask scheduler {self.address} has no worker left; the run goes on when one joins")

    def close(self) -> None:
        self.client.close(timeout=2)
        if self.cluster is not None:
            self.cluster.close(timeout=5)


def _reach(address: str) -> None:
    """Dask itself would try for long to reach a scheduler that is not there."""
    try:
        place = urlsplit(address if "://" in address else f"tcp://{address}")
        if not place.hostname or not place.port:
            raise UserError(f"--scheduler {address} is not an address; write it as tcp://HOST:8786")
        socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise _unreachable(address, error) from error


def _connected(client: Callable[..., Any], target: Any, address: str) -> Any:
    """A client of the cluster. A port of something else, a dashboard's say, would keep it waiting for ever."""
    made: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def connect() -> None:
        try:
            made.put(client(target, timeout=CONNECT_SECONDS, set_as_default=False))
        except (OSError, ValueError, ImportError) as error:
            made.put(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        found = made.get(timeout=CONNECT_SECONDS + 2)
    except queue.Empty:
        raise _unreachable(address, TimeoutError("what listens there does not speak Dask's protocol")) from None
    if isinstance(found, Exception):
        raise _unreachable(address, found) from found
    return found


def _unreachable(address: str, error: Exception) -> UserError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return UserError(
        f"no Dask scheduler answers at {address}: {reason}; start one with `dask scheduler`, "
        "or leave --scheduler out for a local cluster"
    )


def worker_obstacle(settings: WorkerSettings, cells: list[dict[str, Any]]) -> str | None:
    """Asked of each worker: why it could not run such cells."""
    root = data_root(settings.data_root)
    for cell in cells:
        reason = other_versions(cell) or _no_data(cell["dataset"], cell["splits"], root)
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
