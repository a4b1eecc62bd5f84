"""The source files of a class, and hashes of them, without running any code.

A *stamp* (path, size and time of files) guards cached information about code; a *hash* of the content is part of a
cell's key, so that results of edited code are never mistaken for those of the old code.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOMS = ("augmenters", "bench", "models", "tables")
# Identified by their versions, or too large to follow; imports from these are not a plug-in's own code.
FOREIGN = frozenset(
    "torch torch_geometric numpy scipy sklearn pandas matplotlib seaborn mlflow optuna networkx rich typer ot".split()
)


@lru_cache(maxsize=64)
def source_stamp(*packages: str) -> str | None:
    """A hash of path, size and time of every Python file of some packages; None if one cannot be found."""
    digest = hashlib.blake2b(sys.version.encode(), digest_size=8)
    for package in packages:
        spec = _find(package)
        if spec is None:
            return None
        for path in sorted(_files(spec)):
            _stamp(digest, path)
    return digest.hexdigest()


def module_stamp(module: str) -> str | None:
    """The same for a module and everything it imports, directly or indirectly; None if it is not a file."""
    files = _closure(module, follow_foreign=True)
    if not files:
        return None
    digest = hashlib.blake2b(sys.version.encode(), digest_size=8)
    for path in files:
        _stamp(digest, path)
    return digest.hexdigest()


def module_hash(module: str) -> str | None:
    """A hash of a module's source and of the modules it imports from its own package or its own folder.

    Installed third-party packages are identified by their versions, and augbench's own packages by theirs.
    """
    files = _closure(module, follow_foreign=False)
    if not files:
        return None
    digest = hashlib.blake2b(digest_size=6)
    for path in files:
        digest.update(path.name.encode() + b"\0" + _content(path, *_times(path)) + b"\0")
    return digest.hexdigest()


def imported_rooms(module: str) -> list[str]:
    """The modules of augbench that a plug-in's files import, from which it may use code of built-in methods."""
    found = {name for path in _closure(module, follow_foreign=False) for name in _imports(path, "")}
    return sorted(name for name in found if name.partition(".")[0] in ("augmenters", "models"))


def _closure(module: str, follow_foreign: bool) -> list[Path]:
    """The files of a module and of everything it imports, sorted, without the standard library and `FOREIGN`."""
    own = module.partition(".")[0]
    waiting, seen, files = [module], {module}, set()
    while waiting:
        name = waiting.pop()
        spec = _find(name)
        if spec is None or not spec.has_location or not spec.origin:
            continue
        path = Path(spec.origin)
        installed = "site-packages" in path.parts or "dist-packages" in path.parts
        if installed and name.partition(".")[0] != own:
            if follow_foreign:
                files.add(path)  # a default may be imported from it; where it gets that from is not followed
            continue
        files.add(path)
        package = name if spec.submodule_search_locations else name.rpartition(".")[0]
        for imported in _imports(path, package):
            top = imported.partition(".")[0]
            known = top in sys.stdlib_module_names or top in FOREIGN or (top in ROOMS and top != own)
            if imported not in seen and not known:
                seen.add(imported)
                waiting.append(imported)
    return sorted(files)


def _imports(path: Path, package: str) -> Iterator[str]:
    """The full names that a file imports: modules, and names that may be modules."""
    if path.suffix != ".py":
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # importing it will report what is wrong with it
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _find(name: str) -> importlib.machinery.ModuleSpec | None:
    """The file of a module, found without importing its parent packages."""
    top, *below = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for depth in range(len(below)):
            if spec is None or spec.submodule_search_locations is None:
                return None
            full = ".".join([top, *below[: depth + 1]])
            spec = importlib.machinery.PathFinder.find_spec(full, list(spec.submodule_search_locations))
    except (ImportError, ValueError, AttributeError):
        return None
    return spec


def _files(spec: importlib.machinery.ModuleSpec) -> Iterator[Path]:
    if spec.submodule_search_locations:
        for place in spec.submodule_search_locations:
            yield from Path(place).rglob("*.py")
    elif spec.has_location and spec.origin:
        yield Path(spec.origin)


def _stamp(digest: hashlib.blake2b, path: Path) -> None:
    digest.update(f"{path}\0{_times(path)}\0".encode())


def _times(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4096)
def _content(path: Path, size: int, time: int) -> bytes:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).digest()
