"""The driver of a run: sends trials to a pool and reports their outcomes to the listeners."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.execution.events import Clock, Done, Finished, Listeners, Planned, Started
from bench.execution.pool import Pool
from bench.execution.suspects import Dispatcher, Failure
from bench.execution.worker import Job, Task, WorkerSettings, bundled, failed_record, run_task
from bench.plan.planner import Plan
from bench.results.ledger import LedgerState
from bench.results.records import TrialRecord

__all__ = ["Clock", "Driver", "Tally"]

AHEAD = 2  # tasks queued per worker, so that none waits for the driver


@dataclass
class Tally:
    """The counts of a run."""

    ran: int = 0
    training: float = 0.0  # seconds that the trials took, summed over workers
    interrupted: bool = False


@dataclass(frozen=True)
class Driver:
    """A plan and everything needed to run it. `state` is that of the ledger, kept up to date by a listener."""

    plan: Plan
    state: LedgerState
    settings: WorkerSettings
    pool: Callable[[], Pool]  # created when there is something to run
    listeners: Listeners

    def run(self, jobs: Sequence[Job]) -> Tally:
        """Run the jobs. Even after an interruption, listeners have received every finished trial."""
        tally = Tally()
        try:
            self.listeners.emit(Planned(self.plan, self.state, jobs))
            if jobs:
                self._run(iter(bundled(jobs)), tally)
        except KeyboardInterrupt:
            tally.interrupted = True
        self.listeners.emit(Done(self.state, tally.interrupted))
        return tally

    def _run(self, tasks: Iterator[Task], tally: Tally) -> None:
        pool = self.pool()
        dispatcher = Dispatcher(pool, self._call, Task.singles)
        try:
            for task, result in dispatcher.each(lambda: self._next(tasks), AHEAD * pool.size):
                self._report(task, result, tally)
        finally:
            pool.close()

    def _call(self, task: Task) -> tuple[object, ...]:
        return run_task, self.settings, task.to_json()

    def _next(self, tasks: Iterator[Task]) -> Task | None:
        task = next(tasks, None)
        for cell, trial in task.jobs if task else ():
            self.listeners.emit(Started(cell, trial))
        return task

    def _report(self, task: Task, result: Failure | list[TrialRecord], tally: Tally) -> None:
        records = [failed_record(job, result.reason) for job in task.jobs] if isinstance(result, Failure) else result
        for (cell, _), record in zip(task.jobs, records, strict=True):
            tally.ran += 1
            tally.training += sum(record.seconds.values())
            self.listeners.emit(Finished(cell, record, self.state))
