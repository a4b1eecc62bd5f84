"""Short trainings outside a run, to predict trial times; isolated like those of a run, and not recorded."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from bench.execution.pool import Pool
from bench.execution.suspects import Dispatcher, Failure
from bench.execution.worker import Job, Task, WorkerSettings, failed_record, run_task
from bench.results.records import TrialRecord

PROBE_TIMEOUT = 300.0  # time limit for a few epochs if the user gives none


def probe_trial(pool: Pool, settings: WorkerSettings, job: Job) -> TrialRecord:
    """One short trial on a pool; a method that exits or hangs gives a failed record."""
    work = iter([job])
    dispatcher: Dispatcher[Job] = Dispatcher(pool, lambda one: (timed_task, settings, Task((one,)).to_json()))
    ((_, result),) = dispatcher.each(lambda: next(work, None), 1)
    return failed_record(job, result.reason) if isinstance(result, Failure) else result[0]


def timed_task(settings: WorkerSettings, work: list[dict[str, Any]]) -> list[TrialRecord]:
    """A task timed in processor seconds, since such a short probe is easily disturbed by other processes."""
    wall, processor = time.perf_counter(), time.process_time()
    records = run_task(settings, work)
    worked = (time.process_time() - processor) / (time.perf_counter() - wall)
    share = min(1.0, worked) if settings.device == "cpu" else 1.0
    return [replace(one, seconds={part: share * taken for part, taken in one.seconds.items()}) for one in records]
