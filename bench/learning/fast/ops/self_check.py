"""Checks that the compiled sums are bit-identical to torch's, for every function and option that the engine uses."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.learning.fast.ops.compiled import Backward, Compiled, Forward, Sums
from bench.learning.fast.ops.torch_private import ADD, embedding_bag

# All remainders modulo the vector width, all numbers of vectors per pass, and several passes with and without both.
WIDTHS = (*range(1, 10), 15, *range(16, 73, 8), 67, 107)
ODD_WIDTHS = (5, 72)  # widths that are also tested with non-finite numbers
ROWS, COLUMNS, SHARED = 12, 9, 3  # summed rows, rows of the table, and shared sums


@dataclass(frozen=True)
class Bags:
    """Which rows are summed with which values: 0 entries for the first row, one more for each row that follows."""

    index: Tensor
    offsets: Tensor
    values: Tensor

    @classmethod
    def drawn(cls, rows: int, columns: int, draw: torch.Generator) -> Bags:
        lengths = torch.arange(rows)
        offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).int()
        index = torch.randint(0, columns, (int(lengths.sum()),), generator=draw).int()
        return cls(index, offsets, torch.randn(len(index), generator=draw, dtype=torch.float32))

    def by_torch(self, table: Tensor) -> Tensor:
        return embedding_bag(table, self.index, self.offsets, False, ADD, False, self.values, True)[0]

    def sums(self, table: Tensor, out: Tensor, first: Sums | None = None) -> Sums:
        return Sums(
            rows=len(self.offsets) - 1,
            width=table.shape[1],
            index=self.index.data_ptr(),
            offsets=self.offsets.data_ptr(),
            values=self.values.data_ptr(),
            table=table.data_ptr(),
            table_stride=table.stride(0),
            out=out.data_ptr(),
            out_stride=out.stride(0),
            first=ctypes.addressof(first) if first else None,
        )


class Case:
    """One width, with or without shared sums, on fresh random numbers."""

    def __init__(self, found: Compiled, width: int, shared: bool, odd: bool) -> None:
        """`odd`: with non-finite numbers, zeros of both signs and the smallest numbers."""
        self.found, self.width = found, width
        self.draw = torch.Generator().manual_seed(width)
        self.gather = Bags.drawn(SHARED, COLUMNS, self.draw) if shared else None
        self.columns = COLUMNS + SHARED if shared else COLUMNS
        self.bags = Bags.drawn(ROWS, self.columns, self.draw)
        self.table = self.numbers(self.columns, wider=5, odd=odd)

    def numbers(self, rows: int, wider: int = 0, odd: bool = False) -> Tensor:
        """A table whose row stride may exceed its width."""
        made = torch.randn(rows, self.width + wider, generator=self.draw, dtype=torch.float32)
        if odd:
            made[:7, 0] = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, -1e-42])
        return made[:, : self.width]

    def first(self) -> Sums | None:
        """The shared sums, at their position in the table."""
        return self.gather.sums(self.table[:COLUMNS], self.table[COLUMNS:]) if self.gather else None

    def expected(self) -> Tensor:
        """The sums as computed by torch."""
        table = self.table.clone()
        if self.gather is not None:
            table[COLUMNS:] = self.gather.by_torch(table[:COLUMNS])
        return self.bags.by_torch(table)

    def forward(self, kind: str, used: int) -> bool:
        """ReLU of the sums with a separate bias (`apart`), with the bias among the rows (`row`), or of rows as they
        are.
        """
        bias, first, count = self.numbers(1)[0].clone(), self.first(), self.columns if kind == "rows" else ROWS
        # Columns from `used` on are negative, so that the ReLU sets them to zero.
        for part in (self.table, bias[None]):
            part[:, used:] = -part[:, used:].nan_to_num(1.0, 1.0, 1.0).abs() - 1
        self.bags.values.abs_()
        bias_row = self.table[COLUMNS - 1] if kind == "row" else None
        if kind == "rows":
            expected = self.table.relu()
        elif bias_row is None:
            expected = (self.expected() + bias).relu()
        else:
            bias_row.copy_(bias)
            expected = self.expected().relu()
            bias_row.fill_(9.0)  # the function has to overwrite it
        front, back = self.relu(kind, count, used, bias, bias_row, first)
        return back == bool(expected[:, used:].any()) and same(front, expected[:, :used])

    def relu(
        self, kind: str, count: int, used: int, bias: Tensor, bias_row: Tensor | None = None, first: Sums | None = None
    ) -> tuple[Tensor, bool]:
        """The used columns of a ReLU, with contiguous rows, and whether another column is nonzero."""
        place, seen = filled(count * self.width, 7.0), torch.empty(self.width, dtype=torch.int32)
        sums = self.bags.sums(self.table, place.view(count, self.width), first)
        sums.rows, sums.out_stride = count, used
        call = Forward(sums=sums, used=used, seen=seen.data_ptr(), bias=bias.data_ptr())
        call.bias_row = None if bias_row is None else bias_row.data_ptr()
        function = self.found.relu_of_rows if kind == "rows" else self.found.relu_of_row_sums
        back = bool(function(ctypes.addressof(call)))
        return place[: count * used].view(count, used), back

    def comes_back(self, kind: str, column: int) -> bool:
        """Whether a column that was expected to be 0, but is not in one row, is reported."""
        self.table.fill_(-1.0)
        self.table[2, column] = 1e-30
        self.bags.values.zero_()
        self.bags.index[-1], self.bags.values[-1] = 2, 1.0
        count = self.columns if kind == "rows" else ROWS
        return self.relu(kind, count, column, filled(self.width, 0.0))[1]

    def backward(self, last: bool, wide_out: bool) -> bool:
        """The gradient before a ReLU, its sums, and the last of them as the bias gradient."""
        nodes, first = COLUMNS, self.first()
        gradient, output = self.numbers(nodes, wider=2), self.numbers(nodes, wider=3).relu_()
        before = gradient * (output > 0)
        self.table[:nodes] = before
        expected = self.expected()
        self.table[:nodes] = 3.0
        out, bias_gradient = self.numbers(ROWS, wider=4 if wide_out else 0), filled(self.width, 5.0)
        call = Backward(sums=self.bags.sums(self.table, out, first), nodes=nodes)
        call.gradient, call.gradient_stride = gradient.data_ptr(), gradient.stride(0)
        call.output, call.output_stride = output.data_ptr(), output.stride(0)
        call.last = bias_gradient.data_ptr() if last else None
        self.found.row_sums_through_relu(ctypes.addressof(call))
        bias_expected = expected[-1] if last else filled(self.width, 5.0)
        return same(self.table[:nodes], before) and same(out, expected) and same(bias_gradient, bias_expected)


def filled(count: int, value: float) -> Tensor:
    return torch.full((count,), value, dtype=torch.float32)


def same(one: Tensor, other: Tensor) -> bool:
    """Equal numbers; NaN equals NaN."""
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def differences(found: Compiled) -> Iterator[str]:
    """All options that do not give the same results as torch."""
    tried = [(width, shared, False) for width, shared in itertools.product(WIDTHS, (False, True))]
    for width, shared, odd in tried + [(width, True, True) for width in ODD_WIDTHS]:
        words = f"width {width}{', shared sums' if shared else ''}{', numbers that are not finite' if odd else ''}"
        for kind, used in itertools.product(("apart", "row", "rows"), sorted({width, max(1, width - 3)})):
            if not Case(found, width, shared, odd).forward(kind, used):
                yield f"ReLU of {'rows' if kind == 'rows' else 'sums'} ({words}, bias {kind}, {used} columns in use)"
        for last, wide_out in ((False, True), (True, False)):  # as the first layer and later layers use it
            if not Case(found, width, shared, odd).backward(last, wide_out):
                yield f"gradient of a ReLU ({words}, {'with' if last else 'without'} the bias)"
        if not shared:
            for kind, column in itertools.product(("apart", "rows"), sorted({0, width // 2, width - 1})):
                if not Case(found, width, shared, odd).comes_back(kind, column):
                    yield f"a column that comes back ({words}, column {column}, {kind})"


@torch.no_grad()
def first_difference(found: Compiled) -> str | None:
    """The first option that does not give the same results as torch; None if all do."""
    return next(differences(found), None)
