"""What the command `bench` does first and last: it looks whose packages Python finds, and ends in order.

Only what needs none of those packages is imported here; the commands come after the look.
"""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.logging import RichHandler

from bench.registry import UserError

PACKAGES = ("augmenters", "models", "tables")  # and `bench`, which has been imported by now


def main() -> None:
    """Entry point: a mistake of the user is one line and exit code 2, never a traceback."""
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
    except BrokenPipeError:  # the reader of a pipe (head, less) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    finally:
        gc.freeze()  # Python would look for cycles in all that MLflow imported before it ends, for most of a second


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the program as an error does, so that it takes its temporary files and servers along.

    A second one ends it at once. One that is ignored, as under nohup, stays ignored.
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


def refuse_other_packages() -> None:
    """The names of our packages are common ones (PyTables is `tables` too): of two, Python takes the first it finds.

    They are looked up, not imported: what a foreign package does when it is imported is its own affair.
    """
    home = Path(__file__).resolve().parents[2]
    for name in PACKAGES:
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):  # it stands half imported, or as something else, in sys.modules
            found = None
        places = [] if found is None else [*(found.submodule_search_locations or ()), *filter(None, [found.origin])]
        if home / name in (Path(place).resolve() for place in places):
            continue
        where = f"the one in {places[0]}" if places else "not installed"
        known = ", perhaps PyTables," if name == "tables" and places else ""
        raise UserError(
            f"the package `{name}` that Python finds is {where}{known} not augbench's in {home}; "
            "rename yours, start from another folder, or install augbench in an environment of its own"
        )


def _escaped(error: UserError) -> str:
    from rich.markup import escape

    return escape(str(error))
