"""Temporary files that do not stay: gone when their work ends, and if that was killed, when the next one begins.

A leaf: it imports the standard library alone. The name of a temporary file says which process of which machine made it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ABANDONED = 24 * 3600.0  # seconds after which a file belongs to nobody, whichever machine made it
_OWNER = re.compile(r"\.([0-9a-f]{8})-([0-9]+)-")


@contextmanager
def replacing(path: Path, unless_taken: bool = False) -> Iterator[Path]:
    """A place to write to that becomes `path` in one step at the end, and is gone if the writing fails.

    It lies in the same folder and ends as the path does, because figures know their format by that.
    With `unless_taken`, what another process has put there meanwhile stays.
    """
    prefix = f".{path.name}"
    sweep(path.parent, prefix)
    part = path.with_name(f"{prefix}{_mark()}{path.suffix}")
    try:
        yield part
        if not unless_taken or not _taken(part, path):
            os.replace(part, path)
    finally:
        with suppress(OSError):  # nothing is left to remove, or the disk is read-only
            part.unlink()


@contextmanager
def scratch_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """An empty folder that is gone afterwards, with all that was put there; by default where the system wants it."""
    home = Path(tempfile.gettempdir()) if parent is None else parent
    sweep(home, prefix)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{_mark()}", dir=home, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def sweep(folder: Path, prefix: str) -> None:
    """Remove what processes that are gone have left in a folder under names that start so."""
    try:
        left = [entry for entry in os.scandir(folder) if entry.name.startswith(prefix)]
    except OSError:
        return
    for entry in left:
        found = _OWNER.match(entry.name[len(prefix) :])
        with suppress(OSError):  # another process sweeps as well, or it is not ours to remove
            facts = entry.stat(follow_symlinks=False)
            old = time.time() - facts.st_mtime > ABANDONED
            if found is None or not _ours(facts) or not (old or _is_gone(found[1], int(found[2]))):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


def _taken(part: Path, path: Path) -> bool:
    """Whether another process was quicker; if not, the name now stands for this file too."""
    try:
        os.link(part, path)
    except FileExistsError:
        return True
    except OSError:  # a file system without hard links
        return False
    return True


def _mark() -> str:
    return f".{_machine()}-{os.getpid()}-{os.urandom(3).hex()}"


def _machine() -> str:
    """Processes have numbers of their own on each machine that uses a folder."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _ours(facts: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or facts.st_uid == os.getuid()


def _is_gone(machine: str, process: int) -> bool:
    if machine != _machine() or os.name == "nt":  # there `os.kill` would end it
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
