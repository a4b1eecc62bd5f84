"""Entry point of the command `bench`: checks whose packages Python finds, and shuts down cleanly.

Only what needs none of those packages is imported here; the commands are imported after the check.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Console
from rich.logging import RichHandler

from bench.public.packages import refuse_other_packages
from bench.registry import UserError


def main() -> None:
    """Entry point: a user's mistake is one line and exit code 2, never a traceback."""
    errors = Console(stderr=True)
    logging.basicConfig(
        level=logging.WARNING,
        format="%(message)s",
        handlers=[RichHandler(console=errors, show_path=False, show_time=False)],
    )
    try:
        with _ending_in_order():
            refuse_other_packages()
            from bench.cli.app import app

            app()
    except UserError as error:
        errors.print(f"[bold red]error:[/] {_escaped(error)}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        errors.print("stopped", highlight=False)
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe (head, less) has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    finally:
        gc.freeze()  # otherwise Python spends most of a second looking for cycles in everything that MLflow imported


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the program as an error does, removing temporary files and stopping servers.

    A second signal ends it at once. A signal that is ignored, as under nohup, stays ignored.
    """

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)

    here = threading.current_thread() is threading.main_thread()
    kinds = [kind for name in ("SIGTERM", "SIGHUP") if here and (kind := getattr(signal, name, None)) is not None]
    before = {kind: signal.getsignal(kind) for kind in kinds}
    taken = [kind for kind in kinds if before[kind] is signal.SIG_DFL]
    for kind in taken:
        signal.signal(kind, end)
    try:
        yield
    finally:
        for kind in taken:
            signal.signal(kind, before[kind])


def _escaped(error: UserError) -> str:
    from rich.markup import escape

    return escape(str(error))
