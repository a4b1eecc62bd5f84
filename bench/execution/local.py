"""The pool of worker processes on this machine.

Each worker has a channel of its own to the driver, so that a death is the death of one task, a task that takes too
long can be ended by itself, and memory that a dead worker had claimed is free again. Workers start when there is
something to do. What they print is read and dropped, except for the last of it, which is part of a death's reason.
A worker that ran somebody else's code does nothing after it: such code may have changed torch's default type, say, or
a function of ours, and the next trial would depend on who ran before it.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from bench.execution.containment import TaskFailed, WarningFilter, one_line
from bench.execution.memory import Claims, shown, workers_within
from bench.execution.nursery import check_system, context, start_early
from bench.execution.pool import Pool, PoolSetup, WorkerLost, overdue
from bench.execution.worker_process import serve
from bench.registry import UserError
from bench.warn_once import warn_once

KEPT = 2000  # bytes of a worker's output that are kept
QUOTED = 200  # characters of it in a reason
STILLBORN = 3  # consecutive workers that may die during startup
AT_ONCE = 65536
LEAVING = 1.0  # seconds a dismissed worker gets to exit


@dataclass
class _Call:
    """A task in progress."""

    task: bytes
    future: Future[Any] = field(default_factory=Future)


@dataclass
class _Worker:
    """A worker process from the driver's point of view."""

    number: int
    process: BaseProcess
    channel: Connection
    output: Connection
    ready: bool = False
    used: bool = False  # it has run somebody else's code, so its task is its last
    call: _Call | None = None
    since: float | None = None  # when its trial started; None while it waits for memory
    tail: bytes = b""
    mute: bool = False  # it has closed its output

    def read_output(self) -> bool:
        """Read its output; False at the end."""
        if self.mute or not self.output.poll():
            return False
        found = os.read(self.output.fileno(), AT_ONCE)
        self.mute = not found
        self.tail = (self.tail + found)[-KEPT:]
        return not self.mute

    def parts(self) -> list[Any]:
        """What to wait on for messages from it."""
        return [self.channel, self.process.sentinel, *([] if self.mute else [self.output])]

    def last_words(self) -> str:
        lines = self.tail.decode(errors="replace").strip().splitlines()
        return one_line(lines[-1])[-QUOTED:] if lines else ""

    def dismiss(self) -> None:
        """Let it exit on its own if it is idle."""
        if self.ready and self.call is None:
            self.channel.close()

    def end(self) -> None:
        if self.channel.closed:
            self.process.join(LEAVING)
        self.process.kill()
        self.process.join()
        self.channel.close()
        self.output.close()


class LocalPool(Pool):
    """Worker processes, as many as fit into memory; those that die are replaced."""

    shares_memory = True

    def __init__(self, setup: PoolSetup) -> None:
        check_system()
        self.timeout, budget = setup.timeout, setup.settings.memory
        self._size = setup.jobs if budget is None else workers_within(budget, setup.jobs)
        if budget is not None and self._size < setup.jobs:
            warn_once(
                f"{self._size} of {setup.jobs} workers, for {shown(budget)} of memory; raise --memory to use more"
            )
        self._claims = None if budget is None else Claims(budget)
        self._workers: dict[int, _Worker] = {}
        self._waiting: deque[_Call] = deque()
        self._started = self._stillborn = 0
        self._once_ready = False
        self._heard = WarningFilter(warn_once)
        self._broken: UserError | None = None
        self._lock = threading.Lock()  # between the callers and the managing thread
        self._closing = False
        self._wakened, self._waker = os.pipe()
        self._pipe = [self._wakened, self._waker]
        self._thread: threading.Thread | None = None

    @classmethod
    def get_ready(cls) -> None:
        start_early()

    @property
    def size(self) -> int:
        return self._size

    def submit(self, function: Callable[..., Any], *payload: Any) -> Future[Any]:
        call = _Call(pickle.dumps((function, payload)))
        with self._lock:
            if self._broken is not None:
                call.future.set_exception(self._broken)
                return call.future
            self._waiting.append(call)
        if self._thread is None:
            atexit.register(self.close)
            resource_tracker.ensure_running()  # started now, because on startup it would unblock signals
            self._thread = threading.Thread(target=self._manage, name="pool", daemon=True)
            self._thread.start()
        self._wake()
        return call.future

    def close(self) -> None:
        self._closing = True
        if self._thread is not None:
            self._wake()
            self._thread.join()
            self._thread = None
            atexit.unregister(self.close)
        while self._pipe:
            os.close(self._pipe.pop())

    def _wake(self) -> None:
        os.write(self._waker, b".")

    def _manage(self) -> None:
        """Manages the workers; runs in its own thread."""
        # Inherited by every process it starts: a terminal sends Ctrl-C to all, but only the driver handles it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            while not self._closing:
                self._start_workers()
                self._hand_out()
                self._listen()
        except Exception as error:
            self._break(UserError(f"the worker pool cannot continue: {type(error).__name__}: {error}"))
        finally:
            for worker in self._workers.values():
                worker.dismiss()
            for worker in list(self._workers.values()):
                self._part_with(worker)

    def _start_workers(self) -> None:
        """Start as many as there is work for, counting those that are still starting."""
        free = sum(worker.call is None for worker in self._workers.values())
        for _ in range(min(len(self._waiting) - free, self._size - len(self._workers))):
            made = context()
            here, there = made.Pipe()
            output, printed = made.Pipe(duplex=False)
            self._started += 1
            process = made.Process(
                target=serve,
                args=(there, printed, dict(os.environ), self._claims is not None),
                name=f"worker {self._started}",
            )
            self._workers[self._started] = _Worker(self._started, process, here, output)
            process.start()
            there.close()
            printed.close()

    def _hand_out(self) -> None:
        for worker in self._workers.values():
            if worker.ready and worker.call is None and self._waiting:
                worker.call = self._waiting.popleft()
                with suppress(OSError):  # it died in the meantime, which `_listen` notices
                    worker.channel.send_bytes(worker.call.task)

    def _listen(self) -> None:
        """Wait for something to happen and record it."""
        workers = list(self._workers.values())
        news = connection.wait([self._wakened, *(part for one in workers for part in one.parts())], self._patience())
        if self._wakened in news:
            os.read(self._wakened, AT_ONCE)
        for worker in workers:
            dead = not worker.process.is_alive()  # checked first: its last messages are still to be read
            worker.read_output()
            self._hear(worker)
            if dead:
                self._bury(worker)
            elif worker.used and worker.call is None:
                self._part_with(worker)
            elif worker.since is not None and self.timeout and time.monotonic() - worker.since > self.timeout:
                self._end_overdue(worker, self.timeout)
        if self._claims is not None:
            for number in self._claims.grant():
                worker = self._workers[number]
                worker.since = time.monotonic()
                with suppress(OSError):
                    worker.channel.send_bytes(b"granted")

    def _patience(self) -> float | None:
        """Seconds until the next trial exceeds its time limit."""
        begun = [worker.since for worker in self._workers.values() if worker.since is not None]
        return max(0.0, min(begun) + self.timeout - time.monotonic()) + 0.01 if self.timeout and begun else None

    def _hear(self, worker: _Worker) -> None:
        try:
            while worker.channel.poll():
                kind, value = worker.channel.recv()
                self._take(worker, kind, value)
        except (EOFError, OSError):  # it has exited, or lost the connection
            worker.process.kill()

    def _take(self, worker: _Worker, kind: str, value: Any) -> None:
        if kind == "ready":
            worker.ready = self._once_ready = True
            self._stillborn = 0
            if self._claims is not None:
                self._claims.join(worker.number)
        elif kind == "begin":
            worker.since = time.monotonic()
        elif kind == "claim" and self._claims is not None:
            worker.since = None
            self._claims.ask(worker.number, value)
        elif kind == "release" and self._claims is not None:
            self._claims.give_back(worker.number)
        elif kind == "warning":
            self._heard(value)
        elif kind == "used":
            worker.used = True
        elif worker.call is not None:
            call, worker.call, worker.since = worker.call, None, None
            if kind == "done":
                call.future.set_result(value)
            else:
                call.future.set_exception(TaskFailed(value))

    def _bury(self, worker: _Worker) -> None:
        while worker.read_output():
            pass
        code, words = worker.process.exitcode or 0, worker.last_words()
        said = f" (its last output: {words})" if words else ""
        self._part_with(worker)
        if worker.call is not None:
            worker.call.future.set_exception(WorkerLost(f"its worker process {_ended(code)}{said}"))
        if not worker.ready:
            self._stillborn += 1
            if not self._once_ready or self._stillborn >= STILLBORN:
                self._break(
                    UserError(
                        f"worker processes end before they start{said}; use `--executor serial`; a script of your own "
                        'must start a run under `if __name__ == "__main__":`'
                    )
                )

    def _end_overdue(self, worker: _Worker, limit: float) -> None:
        call, worker.call = worker.call, None
        self._part_with(worker)
        if call is not None:
            call.future.set_exception(TaskFailed(overdue(limit)))

    def _part_with(self, worker: _Worker) -> None:
        del self._workers[worker.number]
        worker.end()
        if self._claims is not None:
            self._claims.leave(worker.number)

    def _break(self, error: UserError) -> None:
        """No more results will arrive."""
        with self._lock:
            self._broken = error
            calls = [worker.call for worker in self._workers.values() if worker.call is not None]
            calls += self._waiting
            self._waiting.clear()
        for call in calls:
            call.future.set_exception(error)
        for worker in self._workers.values():
            worker.call = None


def _ended(code: int) -> str:
    """How a process ended."""
    if code == -signal.SIGKILL:
        return "was killed, most likely out of memory; try fewer --jobs or less --memory"
    if code < 0:
        with suppress(ValueError):
            return f"died of {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
