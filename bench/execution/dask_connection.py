"""Create our own Dask cluster, or connect to one within a time limit; otherwise give a one-line reason."""

from __future__ import annotations

import logging
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from bench.registry import UserError

CONNECT_SECONDS = 10


@contextmanager
def own_scheduler() -> Iterator[None]:
    """Settings of a scheduler created for a run.

    The run itself decides what caused a worker's death, so Dask need not retry three times first.
    """
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        yield


def own_cluster(workers: int) -> Any:
    """A cluster on this machine, for one run."""
    from distributed import LocalCluster

    with own_scheduler():
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )


def reach(address: str) -> None:
    """Fail quickly; Dask itself would try for a long time to reach a missing scheduler."""
    try:
        place = urlsplit(address if "://" in address else f"tcp://{address}")
        if not place.hostname or not place.port:
            raise UserError(f"--scheduler {address} is not an address; write it as tcp://HOST:8786")
        socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise _unreachable(address, error) from error


def connected(client: Callable[..., Any], target: Any, address: str) -> Any:
    """A client of the cluster. Another kind of server, such as a dashboard, would keep Dask's client waiting."""
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
        raise _unreachable(address, TimeoutError("the server there does not speak Dask's protocol")) from None
    if isinstance(found, Exception):
        raise _unreachable(address, found) from found
    return found


def _unreachable(address: str, error: Exception) -> UserError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return UserError(
        f"no Dask scheduler answers at {address}: {reason}; start one with `dask scheduler`, "
        "or leave --scheduler out for a local cluster"
    )
