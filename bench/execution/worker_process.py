"""A worker process on this machine: receives one task at a time from its driver, and always responds."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

from bench.execution.containment import Report, TaskFailed, contained, ending, forward_warnings, report_to
from bench.execution.memory import join_claims


def serve(channel: Connection, output: Connection, environment: Mapping[str, str], shared_memory: bool) -> None:
    """Work until the driver has ended. Messages are pairs: ready, begin, claim, release, warning, done, failed."""
    for stream in (1, 2):  # the output of methods goes to the driver, not to the terminal
        os.dup2(output.fileno(), stream)
    output.close()
    os.environ.clear()  # the parent may be a fork server, with the environment of its own start
    os.environ.update(environment)
    _end_with_driver()
    sending = threading.Lock()

    def report(kind: str, value: Any) -> None:
        with sending:  # a method may warn from another thread
            channel.send((kind, value))

    forward_warnings(lambda text: report("warning", text))
    report_to(report)
    if shared_memory:
        join_claims(_Room(channel, report))
    report("ready", None)
    while True:
        try:
            task = channel.recv_bytes()
        except EOFError:
            return
        kind, value = _answer(task)
        try:
            report(kind, value)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            report("failed", ending(error))


def _answer(task: bytes) -> tuple[str, Any]:
    try:
        function, payload = contained(pickle.loads, task)
        return "done", contained(function, *payload)
    except TaskFailed as error:
        return "failed", str(error)


class _Room:
    """Memory claims, requested from the driver; nothing else is sent while a task runs."""

    def __init__(self, channel: Connection, report: Report) -> None:
        self.channel, self.report = channel, report

    def claim(self, amount: int) -> None:
        self.report("claim", amount)
        self.channel.recv_bytes()

    def give_back(self) -> None:
        self.report("release", None)


def _end_with_driver() -> None:
    """Exit when the driver has ended, even by SIGKILL."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
