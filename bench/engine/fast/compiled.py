"""Sums of weighted rows in C, for the calls that torch spends more time on reaching than on doing.

Built once a machine with its C compiler (`BENCH_CC`, else `cc`). Where there is none, or where the bits would not be
those of torch's `embedding_bag`, torch does it all: what a trial computes never depends on this.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import platformdirs
import torch

COMPILER_VARIABLE = "BENCH_CC"
SOURCE = Path(__file__).with_name("rows.c")
FLAGS = ["-O3", "-mavx2", "-mfma", "-shared", "-fPIC"]
BUILD_SECONDS = 60


class Sums(ctypes.Structure):
    """What rows.c calls so; whoever makes one keeps the tensors that it points to."""

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
    """What rows.c calls so."""

    _fields_ = (
        ("sums", Sums),
        ("used", ctypes.c_int64),
        ("seen", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("bias_row", ctypes.c_void_p),
    )


class Backward(ctypes.Structure):
    """What rows.c calls so."""

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
        for function in (library.row_sums, library.row_sums_through_relu):
            function.argtypes, function.restype = [ctypes.c_void_p], None
        self.row_sums: Callable[[int], None] = library.row_sums
        self.relu_of_row_sums: Callable[[int], int] = library.relu_of_row_sums
        self.relu_of_rows: Callable[[int], int] = library.relu_of_rows
        self.row_sums_through_relu: Callable[[int], None] = library.row_sums_through_relu


def compiled() -> Compiled | None:
    """The compiled functions, None where torch has to do without them."""
    found = compiled_or_reason()
    return found if isinstance(found, Compiled) else None


@cache
def compiled_or_reason() -> Compiled | str:
    """The compiled functions, or why there are none."""
    compiler = os.environ.get(COMPILER_VARIABLE, "cc")
    if compiler == "none":
        return f"{COMPILER_VARIABLE}=none"
    if (capability := torch.backends.cpu.get_cpu_capability()) not in ("AVX2", "AVX512"):
        return f"the processor has {capability}, not AVX2"
    try:
        found = kept_or_built(compiler)
    except (OSError, subprocess.SubprocessError) as error:
        return f"the C compiler does not do it: {error}"
    return found if same_bits(found) else "its sums differ from torch's in the last bits"


def kept_or_built(compiler: str) -> Compiled:
    """From the user's cache folder, where the first process that builds it leaves it."""
    key = "\n".join([*FLAGS, platform.machine(), SOURCE.read_text()])
    name = f"rows-{hashlib.sha256(key.encode()).hexdigest()[:16]}.so"
    kept = platformdirs.user_cache_path("augbench", appauthor=False) / "compiled" / name
    with contextlib.suppress(OSError):
        return Compiled(kept)
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / name
        command = [compiler, *FLAGS, str(SOURCE), "-o", str(built)]
        subprocess.run(command, check=True, capture_output=True, timeout=BUILD_SECONDS)
        with contextlib.suppress(OSError):  # a cache that cannot be written costs every process this build
            kept.parent.mkdir(parents=True, exist_ok=True)
            beside = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(built, beside)
            beside.replace(kept)  # at once: another process may be reading
        return Compiled(built)


def same_bits(found: Compiled) -> bool:
    """Whether the sums are torch's to the last bit, for widths that take every way through the code."""
    draw = torch.Generator().manual_seed(0)
    lengths = torch.arange(12)
    offsets = torch.cat([torch.zeros(1), lengths.cumsum(0)]).int()
    index = torch.randint(0, 9, (int(lengths.sum()),), generator=draw).int()
    values = torch.rand(len(index), generator=draw)
    for width in (1, 7, 8, 40, 64, 107):
        table, out = torch.randn(9, width, generator=draw), torch.empty(len(lengths), width)
        sums = Sums(rows=len(lengths), width=width, table_stride=width, out_stride=width)
        sums.index, sums.offsets, sums.values = index.data_ptr(), offsets.data_ptr(), values.data_ptr()
        sums.table, sums.out = table.data_ptr(), out.data_ptr()
        found.row_sums(ctypes.addressof(sums))
        if not torch.equal(out, torch.embedding_bag(table, index, offsets, False, 0, False, values, True)[0]):
            return False
    return True
