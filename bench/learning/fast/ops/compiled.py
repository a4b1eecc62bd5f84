"""Sums of weighted rows in C, for calls where torch's overhead exceeds the work.

Without a compiler, or if the results would not be bit-identical to torch's `embedding_bag`, torch is used: results
never depend on this.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from filelock import Timeout

from bench.learning.fast.ops.building import (
    PASSED,
    CannotBuildError,
    Library,
    Recipe,
    build_into,
    cache_folder,
    kept_library,
    lock_for,
    objection,
    private_folder,
)


class Sums(ctypes.Structure):
    """The structure of the same name in rows.c; its creator keeps the tensors that it points to alive."""

    _fields_ = (
        ("rows", ctypes.c_int64),
        ("width", ctypes.c_int64),
        ("index", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("table", ctypes.c_void_p),
        ("table_stride", ctypes.c_int64),
        ("out", ctypes.c_void_p),
        ("out_stride", ctypes.c_int64),
        ("first", ctypes.c_void_p),
    )


class Forward(ctypes.Structure):
    """The structure of the same name in rows.c."""

    _fields_ = (
        ("sums", Sums),
        ("used", ctypes.c_int64),
        ("seen", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("bias_row", ctypes.c_void_p),
    )


class Backward(ctypes.Structure):
    """The structure of the same name in rows.c."""

    _fields_ = (
        ("sums", Sums),
        ("nodes", ctypes.c_int64),
        ("gradient", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("gradient_stride", ctypes.c_int64),
        ("output_stride", ctypes.c_int64),
        ("last", ctypes.c_void_p),
    )


class Compiled:
    """The functions of rows.c; each takes the address of its structure."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        for function in (library.relu_of_row_sums, library.relu_of_rows):
            function.argtypes = [ctypes.c_void_p]
        library.row_sums_through_relu.argtypes, library.row_sums_through_relu.restype = [ctypes.c_void_p], None
        self.relu_of_row_sums: Callable[[int], int] = library.relu_of_row_sums
        self.relu_of_rows: Callable[[int], int] = library.relu_of_rows
        self.row_sums_through_relu: Callable[[int], None] = library.row_sums_through_relu


def compiled() -> Compiled | None:
    """The compiled functions; None if torch has to be used instead."""
    found = compiled_or_reason()
    return found if isinstance(found, Compiled) else None


@cache
def compiled_or_reason() -> Compiled | str:
    """The compiled functions, or why there are none."""
    import torch

    capability = torch.backends.cpu.get_cpu_capability()
    if capability not in ("AVX2", "AVX512"):
        return f"the processor has {capability}, not AVX2"
    try:
        recipe = Recipe.here()
        try:
            return loaded(kept_or_built(recipe, capability), recipe, capability)
        except (OSError, Timeout):  # no cache folder, or it is read-only
            with tempfile.TemporaryDirectory() as folder:
                return loaded(Library(recipe.build(Path(folder))), recipe, capability)  # stays loaded without the file
    except CannotBuildError as error:
        return str(error)
    except (OSError, AttributeError) as error:
        return f"{recipe.command} gave nothing to use: {error}"


def kept_or_built(recipe: Recipe, capability: str) -> Library:
    """The library from the cache, built and checked first if necessary."""
    folder = private_folder()
    found = kept_library(folder, recipe.key)
    if found is not None and found.verdict(torch_version(), capability) is not None:
        return found
    with lock_for(folder, recipe.key):
        found = kept_library(folder, recipe.key) or build_into(folder, recipe)
        try:
            loaded(found, recipe, capability)  # so that waiting processes find the result of the check
        except (OSError, AttributeError):
            found.path.unlink(missing_ok=True)
            raise
    return found


def loaded(library: Library, recipe: Recipe, capability: str) -> Compiled | str:
    """The functions of a library if their sums match torch's, otherwise the reason."""
    from bench.learning.fast.ops.self_check import first_difference

    found, verdict = Compiled(library.path), library.verdict(torch_version(), capability)
    if verdict is None:
        difference = first_difference(found)
        verdict = PASSED if difference is None else f"sums built by {recipe.command} differ from torch's: {difference}"
        library.keep_verdict(verdict, torch_version(), capability)
    return found if verdict == PASSED else verdict


def torch_version() -> str:
    return importlib.metadata.version("torch")


def compiled_status() -> str:
    """One line for the user: whether trials use the compiled sums. Builds nothing and does not import torch."""
    try:
        folder, recipe = cache_folder(), Recipe.here()
        key = recipe.key
        if folder.exists() and (reason := objection(folder)) is not None:
            return f"compiled sums: built anew by each process, since {reason}"
        found = kept_library(folder, key)
        verdicts = {path.read_text(encoding="utf-8") for path in verdict_files(found)} if found else set()
    except (CannotBuildError, OSError) as error:
        return f"compiled sums: not in use: {error}"
    if PASSED in verdicts:
        return "compiled sums: in use"
    if verdicts:
        return f"compiled sums: not in use: {min(verdicts)}"
    return "compiled sums: not built yet; the first trial builds them"


def verdict_files(library: Library) -> list[Path]:
    """The results of checks with this version of torch, on any processor."""
    return sorted(library.path.parent.glob(library.verdict_file(torch_version(), "*").name))
