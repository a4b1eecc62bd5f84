"""What a worker of a Dask cluster does with a task: run it, forward warnings, and exit if it exceeds its time limit."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker

from bench.datasets import cheap_info
from bench.datasets.paths import data_root
from bench.execution.containment import contained, forward_warnings, report_to
from bench.execution.worker import WorkerSettings, other_versions
from bench.plan.cells import Cell
from bench.protocol.splits import resolve_splits
from bench.registry import UserError

NOTICE_SECONDS = 1.0  # for a worker's last message to be sent
GRACE_SECONDS = 30.0  # beyond the limit; then a worker that cannot even report it is killed

_topics: set[str] = set()


def run_call(
    topic: str, number: int, limit: float | None, function: Callable[..., Any], payload: tuple[Any, ...]
) -> Any:
    """Call a function; `topic` is where its driver listens, `number` identifies the call."""
    worker = get_worker()
    if topic not in _topics:
        _topics.add(topic)
        forward_warnings(lambda text: worker.log_event(topic, {"warning": text}))
    if limit is None:
        return contained(function, *payload)
    watch = Watch(limit, lambda: worker.log_event(topic, {"overdue": number}))
    report_to(lambda kind, _: watch.restart() if kind == "begin" else None)
    try:
        return contained(function, *payload)
    finally:
        report_to(None)
        watch.stop()


class Watch:
    """Ends this process when a trial exceeds its time limit; Dask starts a new one."""

    def __init__(self, limit: float, tell: Callable[[], None]) -> None:
        self.limit, self.tell = limit, tell
        self._timer: threading.Timer | None = None
        self._silence = Path(os.devnull).open("w")  # noqa: SIM115 - open as long as the watch exists

    def restart(self) -> None:
        self.stop()
        self._timer = threading.Timer(self.limit, self._expire)
        self._timer.daemon = True
        self._timer.start()
        # Compiled code that never releases the interpreter blocks the timer, but not this.
        faulthandler.dump_traceback_later(self.limit + GRACE_SECONDS, exit=True, file=self._silence)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            faulthandler.cancel_dump_traceback_later()

    def _expire(self) -> None:
        self.tell()
        time.sleep(NOTICE_SECONDS)
        os._exit(1)


class Quiet(WorkerPlugin):
    """Workers of our own cluster share the terminal: their output is dropped."""

    def setup(self, worker: Worker) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)


def worker_obstacle(settings: WorkerSettings, cells: list[dict[str, Any]]) -> str | None:
    """Called on each worker: why it cannot run such cells, if it cannot."""
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
