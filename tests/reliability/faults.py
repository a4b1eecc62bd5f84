"""Kill this process with SIGKILL at a chosen step of its way to disk; the product knows nothing of it.

Every call that changes something below a folder, or flushes or locks it, is a step: it can be killed before the call,
after it, and in the middle of a write. Files that Python opens for writing go through its own slow implementation of
files, whose writes are calls of `os.write` as well.
"""

from __future__ import annotations

import _pyio
import builtins
import fcntl
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

BY_PATH = ("open", "replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir", "truncate")
BY_FILE = ("write", "fsync", "ftruncate", "close", "sendfile", "fchmod")


class Killer:
    """Counts the steps below a folder and ends the process at one of them."""

    def __init__(self, folder: Path, at: int, note: Path, names: tuple[str, ...] = ()) -> None:
        self.folder, self.at, self.note, self.names = str(folder.resolve()), at, note, names
        self.count = 0
        self._write, self._open = os.write, os.open

    def install(self) -> None:
        for name in BY_PATH:
            setattr(os, name, self._wrapped(name, getattr(os, name), self._path_of))
        for name in BY_FILE:
            setattr(os, name, self._wrapped(name, getattr(os, name), self._file_of))
        fcntl.flock = self._wrapped("flock", fcntl.flock, self._file_of)
        plain = io.open

        def opened(file: Any, mode: str = "r", *rest: Any, **more: Any) -> Any:
            """Reading stays as it is; writing below the folder is made of steps."""
            where = self._file_of(file) if isinstance(file, int) else self._path_of(file)
            slow = where is not None and any(letter in mode for letter in "wax+")
            return (_pyio.open if slow else plain)(file, mode, *rest, **more)

        io.open = opened  # type: ignore[assignment]
        builtins.open = opened  # type: ignore[assignment]

    def _wrapped(self, name: str, real: Callable[..., Any], find: Callable[..., str | None]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            place = find(args[0], kwargs.get("dir_fd"))
            if place is None or (name == "open" and not _changes(args, kwargs)):
                return real(*args, **kwargs)
            what = f"{name} {os.path.basename(place)}"
            self._step(f"before {what}")
            if name == "write":
                self._step(f"half of {what}", lambda: self._write(args[0], bytes(args[1])[: len(args[1]) // 2]))
            done = real(*args, **kwargs)
            self._step(f"after {what}")
            return done

        return call

    def _path_of(self, path: Any, dir_fd: int | None = None) -> str | None:
        if isinstance(path, int):
            return self._file_of(path)
        text = os.fsdecode(path)
        if dir_fd is not None:
            text = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)
        return self._within(os.path.abspath(text))

    def _file_of(self, file: int, dir_fd: int | None = None) -> str | None:
        try:
            return self._within(os.readlink(f"/proc/self/fd/{file}"))
        except OSError:
            return None

    def _within(self, path: str) -> str | None:
        if not path.startswith(self.folder):
            return None
        name = os.path.basename(path)
        return path if not self.names or name.endswith(self.names) else None

    def _step(self, what: str, first: Callable[[], Any] | None = None) -> None:
        self.count += 1
        if self.count == self.at:
            if first:
                first()
            note = self._open(self.note, os.O_WRONLY | os.O_CREAT, 0o644)
            self._write(note, what.encode())
            os.kill(os.getpid(), signal.SIGKILL)


def _changes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    flags = args[1] if len(args) > 1 else kwargs.get("flags", os.O_RDONLY)
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))


def in_a_fork(job: Callable[[], Any]) -> int:
    """Run a job in a copy of this process: 0, the number of the signal that ended it as a negative, or 1."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # stdout belongs to the parent's report
            job()
            code = 0
        finally:
            os._exit(code)  # no atexit handlers, no flush of what the parent had in its buffers
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
