"""Sums of weighted rows in C, for the calls that torch spends more time on reaching than on doing.

Every process builds them for itself, with the machine's C compiler, in a third of a second: nothing is kept that could
be half written or of another machine. Where there is no compiler, or where the bits would not be those of torch's
`embedding_bag`, torch does it all: what a trial computes never depends on this.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

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
        found = built(shlex.split(compiler))
    except subprocess.CalledProcessError as error:
        return f"{compiler} failed: {' '.join(error.stderr.split())[:200]}"
    except (OSError, ValueError, AttributeError, subprocess.TimeoutExpired) as error:
        return f"{compiler} gave nothing to use: {error}"
    return found if same_bits(found) else f"sums built by {compiler} differ from torch's in the last bits"


def built(compiler: list[str]) -> Compiled:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "rows.so"
        command = [*compiler, *FLAGS, str(SOURCE), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=BUILD_SECONDS)
        return Compiled(library)  # which stays when the file is gone


def same_bits(found: Compiled) -> bool:
    """Whether sums, with a ReLU and without, are torch's to the last bit, for widths that take every way through."""
    draw = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float32)

    lengths = torch.arange(12)
    offsets = torch.cat([torch.zeros(1), lengths.cumsum(0)]).int()
    index = torch.randint(0, 9, (int(lengths.sum()),), generator=draw).int()
    values, rows = drawn(len(index)), len(lengths)
    for width in (1, 7, *range(8, 73, 8), 107):
        table, bias, out, seen = drawn(9, width), drawn(width), drawn(rows, width), torch.empty(width).int()
        sums = Sums(rows=rows, width=width, table_stride=width, out_stride=width)
        sums.index, sums.offsets, sums.values = index.data_ptr(), offsets.data_ptr(), values.data_ptr()
        sums.table, sums.out = table.data_ptr(), out.data_ptr()
        expected = torch.embedding_bag(table, index, offsets, False, 0, False, values, True)[0]
        found.row_sums(ctypes.addressof(sums))
        if not torch.equal(out, expected):
            return False
        call = Forward(sums=sums, used=width, seen=seen.data_ptr(), bias=bias.data_ptr())
        found.relu_of_row_sums(ctypes.addressof(call))
        if not torch.equal(out, (expected + bias).relu()):
            return False
    return True
