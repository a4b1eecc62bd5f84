"""Where worker processes come from: on Linux from one process that has torch imported, elsewhere from a new Python.

A fork of the driver would not do: it has threads by then, MLflow's and the pool's. The fork server has none, and it
starts while the driver is still planning.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, SpawnContext

FORKS = sys.platform == "linux"  # a Mac's libraries do not all outlive a fork
PRELOADED = "bench.execution.preloaded"


def start_early() -> bool:
    """Begin to import what workers need, beside this process; it ends with this process.

    False where workers have to be started one by one: on another system, or where the folder for temporary files has so
    long a name that no socket fits into it.
    """
    if not FORKS:
        return False
    resource_tracker.ensure_running()  # it would lift the mask of signals when it starts
    multiprocessing.set_forkserver_preload([PRELOADED])
    with _interrupts_held_back(), _current_folder_ignored():
        try:
            forkserver.ensure_running()
        except OSError:
            return False
    return True


def context() -> ForkServerContext | SpawnContext:
    """What worker processes are made with."""
    if start_early():
        return multiprocessing.get_context("forkserver")
    return multiprocessing.get_context("spawn")


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Passed on to the processes that are started: a terminal sends Ctrl-C to all, but the driver alone answers it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _current_folder_ignored() -> Iterator[None]:
    """A folder `models` where the user happens to stand is not ours; workers take over the driver's path later."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before
