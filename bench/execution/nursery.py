"""Starts worker processes: on Linux from a fork server that has imported torch, elsewhere as new Python processes.

Forking the driver would not work, because it has threads by then (of MLflow and the pool). The fork server has none,
and it starts while the driver is still planning.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from typing import TYPE_CHECKING

from bench.registry import UserError

if TYPE_CHECKING:  # Windows has only one of them
    from multiprocessing.context import ForkServerContext, SpawnContext

FORKS = sys.platform == "linux"  # some macOS libraries do not survive a fork
PRELOADED = "bench.execution.preloaded"


def check_system() -> None:
    """Report that worker processes cannot be managed here, before any is started."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        raise UserError("worker processes need a POSIX system such as Linux; on Windows, run augbench in WSL")


def start_early() -> bool:
    """Start importing what workers need in a fork server, which ends with this process.

    Returns False if workers have to be started individually: on another system, or if the path of the folder for
    temporary files is too long for a socket.
    """
    if not FORKS:
        return False
    resource_tracker.ensure_running()  # started now, because on startup it would unblock signals
    multiprocessing.set_forkserver_preload([PRELOADED])
    with _interrupts_held_back(), _current_folder_ignored():
        try:
            forkserver.ensure_running()
        except OSError:
            return False
    return True


def context() -> ForkServerContext | SpawnContext:
    """The multiprocessing context of worker processes."""
    if start_early():
        return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Inherited by started processes: a terminal sends Ctrl-C to all of them, but only the driver handles it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _current_folder_ignored() -> Iterator[None]:
    """A folder `models` in the current directory must not shadow ours; workers get the driver's path later."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before
