"""Executors of one machine: this process alone, or several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from bench.execution.tasks import Task, WorkerSettings, failed_records, run_task
from bench.ledger import Record


class SerialExecutor:
    """Runs everything here, one task after the other."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Record]]:
        for task in tasks:
            yield run_task(self.settings, task.to_json())

    def close(self) -> None:
        """Nothing runs beside this process."""


class ProcessExecutor:
    """Runs tasks in worker processes. A worker that dies costs its task a second try alone, then a failed record."""

    def __init__(self, settings: WorkerSettings, jobs: int) -> None:
        self.settings, self.jobs = settings, jobs
        self._pool = self._new_pool(jobs)

    def _new_pool(self, jobs: int) -> ProcessPoolExecutor:
        # spawn: a forked copy of a process that has run torch or MLflow threads can hang.
        return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_start_worker)

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Record]]:
        waiting = list(reversed(tasks))
        running: dict[Future[list[Record]], Task] = {}
        while waiting or running:
            try:
                while waiting and len(running) < self.jobs + 1:  # one in hand, so that no worker waits for the driver
                    task = waiting.pop()
                    running[self._submit(self._pool, task)] = task
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    records = future.result()
                    del running[future]
                    yield records
            except BrokenProcessPool:
                suspects, running = list(running.values()), {}
                self._kill(self._pool)
                self._pool = self._new_pool(self.jobs)
                for task in suspects:
                    yield self._run_alone(task)

    def _submit(self, pool: ProcessPoolExecutor, task: Task) -> Future[list[Record]]:
        return pool.submit(run_task, self.settings, task.to_json())

    def _run_alone(self, task: Task) -> list[Record]:
        """A task that was in flight when a worker died, by itself, to see whether it was the cause."""
        pool = self._new_pool(1)
        try:
            return self._submit(pool, task).result()
        except BrokenProcessPool:
            return failed_records(task, "its worker process died twice, most likely out of memory; try fewer --jobs")
        finally:
            self._kill(pool)

    def close(self) -> None:
        self._kill(self._pool)

    @staticmethod
    def _kill(pool: ProcessPoolExecutor) -> None:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def _start_worker() -> None:
    """The driver alone answers Ctrl-C; a worker whose driver is gone ends by itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
