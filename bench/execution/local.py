"""Executors of one machine: this process alone, or several."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker

from bench.execution.memory import Claims, join_claims
from bench.execution.worker import Task, WorkerSettings, failed_record, run_task
from bench.registry import UserError
from bench.results.records import TrialRecord

DIED = "its worker process died twice, most likely out of memory; try fewer --jobs or less --memory"


class SerialExecutor:
    """Runs everything here, one task after the other."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings

    def run(self, tasks: Sequence[Task]) -> Iterator[list[TrialRecord]]:
        for task in tasks:
            yield run_task(self.settings, task.to_json())

    def close(self) -> None:
        """Nothing runs beside this process."""


class ProcessExecutor:
    """Runs tasks in worker processes. Those that were under way when one dies run again, each alone."""

    def __init__(self, settings: WorkerSettings, jobs: int) -> None:
        self.settings, self.jobs = settings, jobs
        self._pools: list[ProcessPoolExecutor] = []

    def run(self, tasks: Sequence[Task]) -> Iterator[list[TrialRecord]]:
        waiting = list(reversed(tasks))
        running: dict[Future[list[TrialRecord]], Task] = {}
        pool = self._new_pool(self.jobs)
        while waiting or running:
            try:
                while waiting and len(running) < self.jobs + 1:  # one in hand, so that no worker waits for the driver
                    task = waiting.pop()
                    running[self._submit(pool, task)] = task
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    records = future.result()
                    del running[future]
                    yield records
            except BrokenProcessPool:
                suspects, running = list(running.values()), {}
                self._kill(pool)
                yield from self._one_by_one([single for task in suspects for single in task.singles()])
                pool = self._new_pool(self.jobs)

    def _one_by_one(self, tasks: Sequence[Task]) -> Iterator[list[TrialRecord]]:
        """Trials that were in flight when a worker died, each with a worker to itself, to see which was the cause.

        Only two workers of its own tell: a trial may have waited yet when the others' died, and one may die by chance.
        """
        pool = self._new_pool(1)
        for task in tasks:
            for last in (False, True):
                try:
                    yield self._submit(pool, task).result()
                    break
                except BrokenProcessPool:
                    self._kill(pool)
                    pool = self._new_pool(1)
                    if last:
                        yield [failed_record(job, DIED) for job in task.jobs]
        self._kill(pool)

    def _new_pool(self, jobs: int) -> ProcessPoolExecutor:
        # spawn: a forked copy of a process that has run torch or MLflow threads can hang.
        context = multiprocessing.get_context("spawn")
        claims = None if self.settings.memory is None else Claims(self.settings.memory, context)
        pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(claims,))
        self._pools.append(pool)
        try:
            with _deaf_to_interrupts():
                ready = pool.submit(os.getpid)
            ready.result()
        except BrokenProcessPool as error:
            raise UserError(
                "worker processes end before they start; run with --jobs 1 to see why, "
                'and from a script of your own only under `if __name__ == "__main__":`'
            ) from error
        return pool

    def _submit(self, pool: ProcessPoolExecutor, task: Task) -> Future[list[TrialRecord]]:
        with _deaf_to_interrupts():
            return pool.submit(run_task, self.settings, task.to_json())

    def close(self) -> None:
        for pool in list(self._pools):
            self._kill(pool)

    def _kill(self, pool: ProcessPoolExecutor) -> None:
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
        self._pools.remove(pool)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started within never see Ctrl-C, which a terminal sends to all: the driver alone answers it.

    A signal mask passes on to what is started under it. One that arrives meanwhile reaches the driver afterwards.
    """
    resource_tracker.ensure_running()  # it would lift the mask when it starts
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin(claims: Claims | None) -> None:
    """What a worker does first."""
    if claims is not None:
        join_claims(claims)
    _end_with_driver()


def _end_with_driver() -> None:
    """A worker whose driver is gone, even by SIGKILL, ends by itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
