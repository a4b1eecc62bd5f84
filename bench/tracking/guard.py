"""Runs MLflow's command line until it ends or standard input closes, then ends all of its processes.

A separate program, started in its own process group by `bench.tracking.server`; standard library only. It needs a POSIX
system, but can be imported on any.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

GRACE_SECONDS = 5.0
_LOOK_SECONDS = 0.5


def guard(words: Sequence[str]) -> int:
    """The exit code of a server that ended by itself; otherwise this process ends together with the server."""
    for ending in (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
    ):  # handlers, because the server would inherit ignored signals
        signal.signal(ending, lambda *_: None)
    server = subprocess.Popen([sys.executable, "-P", "-m", "mlflow", *words], stdin=subprocess.DEVNULL)
    while server.poll() is None and _is_wanted():
        pass
    code = server.poll()
    os.killpg(0, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(GRACE_SECONDS)
    if code is None:
        os.killpg(0, signal.SIGKILL)
    return code or 0


def _is_wanted() -> bool:
    """Wait briefly; False once the other end is closed."""
    ready, _, _ = select.select([0], [], [], _LOOK_SECONDS)
    return not ready or bool(os.read(0, 4096))


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
