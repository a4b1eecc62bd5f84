"""Files that are whole or not there: a crash or a full disk in the middle of writing leaves the old file as it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place beside a file to write it to; what is complete takes the file's name, anything else is removed."""
    part = path.with_name(f".{os.getpid()}.{path.name}")  # ends as the file does: figures know their format by it
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
