"""Temporary files that are removed when their work ends or, if it was killed, when the next process starts.

Imports only the standard library. The name of a temporary file contains the process and machine that created it.
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

ABANDONED = 24 * 3600.0  # seconds after which a file counts as abandoned, whichever machine created it
_OWNER = re.compile(r"\.([0-9a-f]{8})-([0-9]+)-")


@contextmanager
def replacing(path: Path, unless_taken: bool = False) -> Iterator[Path]:
    """A path to write to; on success it is renamed to `path` atomically, on failure it is removed.

    It is in the same folder and has the same extension, from which figures infer their format. With `unless_taken`, a
    file that another process has created in the meantime is kept.
    """
    prefix = f".{path.name}"
    sweep(path.parent, prefix)
    part = path.with_name(f"{prefix}{_mark()}{path.suffix}")
    try:
        yield part
        if not unless_taken or not _taken(part, path):
            os.replace(part, path)
    finally:
        with suppress(OSError):  # already removed, or the disk is read-only
            part.unlink()


@contextmanager
def scratch_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """An empty folder that is removed afterwards with its content; by default in the system's folder for temporary
    files.
    """
    home = Path(tempfile.gettempdir()) if parent is None else parent
    sweep(home, prefix)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{_mark()}", dir=home, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def sweep(folder: Path, prefix: str) -> None:
    """Remove files in a folder that start with this name and whose processes have ended."""
    try:
        left = [entry for entry in os.scandir(folder) if entry.name.startswith(prefix)]
    except OSError:
        return
    for entry in left:
        found = _OWNER.match(entry.name[len(prefix) :])
        with suppress(OSError):  # another process is removing it as well, or we have no permission
            facts = entry.stat(follow_symlinks=False)
            old = time.time() - facts.st_mtime > ABANDONED
            if found is None or not _ours(facts) or not (old or _is_gone(found[1], int(found[2]))):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


def _taken(part: Path, path: Path) -> bool:
    """Whether another process was faster; if not, the name now also refers to this file."""
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
    """An identifier of this machine: process numbers are only unique per machine."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _ours(facts: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or facts.st_uid == os.getuid()


def _is_gone(machine: str, process: int) -> bool:
    if machine != _machine() or os.name == "nt":  # on Windows, `os.kill` would end the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
