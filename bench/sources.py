"""A stamp of source files: what was learnt from code without running it holds as long as the files stay as they are."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=64)
def source_stamp(*packages: str) -> str | None:
    """A hash of place, size and time of every Python file of some packages, found without importing them."""
    digest = hashlib.blake2b(sys.version.encode(), digest_size=8)
    for package in packages:
        files = _files(package)
        if files is None:
            return None
        for path in sorted(files):
            found = path.stat()
            digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _files(package: str) -> Iterable[Path] | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return [path for place in spec.submodule_search_locations for path in Path(place).rglob("*.py")]
    return [Path(spec.origin)] if spec.has_location and spec.origin else None
