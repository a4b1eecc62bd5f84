"""A layer's ReLU combined with the preceding sparse product: one compiled call each way instead of several in torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

from bench.learning.fast.ops.compiled import Backward, Compiled, Forward, Sums
from bench.learning.fast.ops.product import Bag, Half


class ReluForward:
    """The columns of a ReLU that are in use; the others are computed, checked to be zero and left out."""

    def __init__(self, function: Callable[[int], int], sums: Sums, rows: int, width: int) -> None:
        self.rows, self.place, self.seen = rows, torch.empty(rows * width), torch.empty(width, dtype=torch.int32)
        sums.rows, sums.width, sums.out = rows, width, self.place.data_ptr()
        self.call = Forward(sums=sums, seen=self.seen.data_ptr())
        self.sums = self.call.sums
        self.function, self.address = function, ctypes.addressof(self.call)
        self.narrow(width)

    def narrow(self, width: int) -> None:
        """From now on, use only the first `width` columns."""
        self.front = self.place[: self.rows * width].view(self.rows, width)
        self.sums.out_stride = width

    def take(self, rows: Tensor) -> None:
        """Set `front` from a ReLU computed by torch."""
        self.front.copy_(rows[:, : self.front.shape[1]])

    def done(self, used: int) -> bool:
        """Write `front`; returns False if any column from `used` on is nonzero."""
        self.call.used = used
        return not self.function(self.address)


class RowsForward(ReluForward):
    """For rows as they are."""

    def __init__(self, compiled: Compiled, before_relu: Tensor) -> None:
        self.before_relu, (rows, width) = before_relu, before_relu.shape
        sums = Sums(table=before_relu.data_ptr(), table_stride=width)
        super().__init__(compiled.relu_of_rows, sums, rows, width)


class SumsForward(ReluForward):
    """For a sparse product and a bias, which may be one of the summed rows."""

    def __init__(self, compiled: Compiled, half: Half, rows: int, bias: Tensor, bias_row: Tensor | None) -> None:
        self.half, self.first, self.bias = half, first_sums(half), bias
        super().__init__(compiled.relu_of_row_sums, sums_over(half.main, half.source, self.first), rows, len(bias))
        self.call.bias, self.call.bias_row = bias.data_ptr(), None if bias_row is None else bias_row.data_ptr()

    def done(self, used: int) -> bool:
        self.sums.values = self.half.main.values.data_ptr()
        return super().done(used)


class ReluBackward:
    """The gradient before a ReLU, and its product with the transposed matrix."""

    def __init__(self, compiled: Compiled, half: Half, out: Tensor, bias_gradient: Tensor | None) -> None:
        self.half, self.first, self.out, self.bias_gradient = half, first_sums(half), out, bias_gradient
        sums = sums_over(half.main, half.source, self.first)
        sums.rows, sums.width, sums.out, sums.out_stride = *out.shape, out.data_ptr(), out.stride(0)
        last = None if bias_gradient is None else bias_gradient.data_ptr()
        self.call = Backward(sums=sums, nodes=len(half.rows), last=last)
        self.sums = self.call.sums
        self.function, self.address = compiled.row_sums_through_relu, ctypes.addressof(self.call)

    def __call__(self, gradient: Tensor, output: Tensor) -> None:
        """From the gradient of a ReLU with this `output` to `out`, and the bias gradient to its place, if there is a
        bias.
        """
        call = self.call
        self.sums.values = self.half.main.values.data_ptr()
        call.gradient, call.gradient_stride = gradient.data_ptr(), gradient.stride(0)
        call.output, call.output_stride = output.data_ptr(), output.stride(0)
        self.function(self.address)


def sums_over(bag: Bag, table: Tensor, first: Sums | None = None) -> Sums:
    """The sums that `bag` computes from a table; the caller sets the destination."""
    return Sums(
        index=bag.index.data_ptr(),
        offsets=bag.offsets.data_ptr(),
        values=bag.values.data_ptr(),
        table=table.data_ptr(),
        table_stride=table.stride(0),
        first=ctypes.addressof(first) if first else None,
    )


def first_sums(half: Half) -> Sums | None:
    """The sums that many rows share, stored after the other rows."""
    if half.gather is None:
        return None
    sums = sums_over(half.gather, half.rows)
    sums.rows, sums.width = half.sum_rows.shape
    sums.out, sums.out_stride = half.sum_rows.data_ptr(), half.sum_rows.stride(0)
    return sums
