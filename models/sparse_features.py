"""Sparse node features that behave like an ordinary tensor.

One-hot degrees of large graphs are thousands of columns wide, so a dense table for a test part takes gigabytes. A
`SparseFeatures` stores, per node, a few columns and their values (one for one-hot features, more for mixed ones). PyG
treats it like any `x`: graphs can be copied, batched and reduced to some of their nodes without a dense table, and a
linear layer selects rows of its weights. Any other operation gets a dense tensor; from then on the object stores the
dense table, so that writing to it, or to a view of it, works as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

if TYPE_CHECKING:
    from typing_extensions import TypeIs

WIDE = 512  # one-hot features with more columns are stored sparsely; narrower tables are small and faster to use


class SparseFeatures(Tensor):
    """A matrix of shape rows x `width`, given by `columns` and their `amounts`, both of shape rows x entries."""

    columns: Tensor
    amounts: Tensor
    table: Tensor | None  # dense, once it was requested

    @staticmethod
    def __new__(cls, columns: Tensor, values: Tensor, width: int) -> SparseFeatures:
        shape = (len(columns), width)
        new: SparseFeatures = Tensor._make_wrapper_subclass(cls, shape, dtype=values.dtype, device=values.device)
        new.columns, new.amounts, new.table = columns, values, None
        return new

    @classmethod
    def one_hot(cls, columns: Tensor, width: int) -> SparseFeatures:
        """A one in the given column of each row."""
        return cls(columns.view(-1, 1), torch.ones(len(columns), 1), width)

    @classmethod
    def of_matrix(cls, matrix: sp.csr_array) -> SparseFeatures:
        """The rows of a scipy matrix, in single precision."""
        matrix = sp.csr_array(matrix, copy=True)
        matrix.sum_duplicates()
        counts = np.diff(matrix.indptr)
        rows, most = matrix.shape[0], max(int(counts.max(initial=0)), 1)
        columns, values = np.zeros((rows, most), dtype=np.int64), np.zeros((rows, most), dtype=np.float32)
        row = np.repeat(np.arange(rows), counts)
        place = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
        columns[row, place], values[row, place] = matrix.indices, matrix.data
        return cls(torch.from_numpy(columns), torch.from_numpy(values), matrix.shape[1])

    def columns_of_ones(self) -> np.ndarray | None:
        """The column of the one in each row if the features are one-hot, else None."""
        single = self.columns.shape[1] == 1 and bool((self.amounts == 1).all())
        return self.columns.view(-1).numpy() if single else None

    def dense(self) -> Tensor:
        """The dense table; a new one unless it was requested before."""
        if self.table is not None:
            return self.table
        empty = self.amounts.new_zeros(len(self.columns), _width(self))
        return empty.scatter_add_(1, self.columns, self.amounts)

    def matrix(self) -> sp.csr_array:
        """The same as a scipy sparse matrix, in the precision of the amounts."""
        if self.table is not None:
            return sp.csr_array(self.table.numpy())
        rows, entries = self.columns.shape
        offsets = np.arange(rows + 1) * entries
        parts = (self.amounts.numpy().reshape(-1).copy(), self.columns.numpy().reshape(-1).copy(), offsets)
        matrix = sp.csr_array(parts, shape=(rows, _width(self)))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _FACTS:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        known = _KNOWN.get(func)
        if known is not None:
            made = known(*args, **kwargs)
            if made is not NotImplemented:
                return made
        with torch._C.DisableTorchFunctionSubclass():
            return func(*_dense_for_good(args), **_dense_for_good(kwargs))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*_dense_for_good(args), **_dense_for_good(kwargs or {}))

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"SparseFeatures(shape={tuple(self.shape)}, entries={self.columns.shape[1]})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.table is not None:
            return self.table.__reduce_ex__(protocol)
        return SparseFeatures, (self.columns, self.amounts, _width(self))

    def __deepcopy__(self, memo: Any) -> Tensor:
        return _clone(self)


def one_hot(columns: Tensor, width: int) -> Tensor:
    """A one in the given column of each row; wide tables are stored sparsely."""
    if width > WIDE:
        return SparseFeatures.one_hot(columns, width)
    return torch.nn.functional.one_hot(columns, width).to(torch.float32)


def sparse_matrix(x: Tensor) -> sp.csr_array:
    """Node features as a sparse matrix, however they are stored."""
    return x.matrix() if isinstance(x, SparseFeatures) else sp.csr_array(x.numpy())


def is_sparse(x: Any) -> TypeIs[SparseFeatures]:
    """Whether features are stored sparsely."""
    return isinstance(x, SparseFeatures) and x.table is None


def entries(x: Tensor) -> int:
    """How many numbers it takes to store these features."""
    return x.columns.numel() if isinstance(x, SparseFeatures) and x.table is None else x.numel()


def _width(x: Tensor) -> int:
    with torch._C.DisableTorchFunctionSubclass():
        return int(x.shape[1])


def _dense_for_good(value: Any) -> Any:
    """Replace each `SparseFeatures` in the arguments by its dense table, which it stores from now on."""
    if isinstance(value, SparseFeatures):
        value.table = value.dense()
        return value.table
    if isinstance(value, (list, tuple)):
        made = [_dense_for_good(one) for one in value]
        return type(value)(made) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {name: _dense_for_good(one) for name, one in value.items()}
    return value


def _like(x: SparseFeatures, columns: Tensor, values: Tensor) -> SparseFeatures:
    return SparseFeatures(columns, values, _width(x))


def _clone(x: SparseFeatures, **_: Any) -> Tensor:
    return x.table.clone() if x.table is not None else _like(x, x.columns.clone(), x.amounts.clone())


def _itself(x: SparseFeatures, *args: Any, **kwargs: Any) -> Any:
    """Operations that leave it unchanged: same device, same precision."""
    wanted = [*args, *kwargs.values()]
    same = all(one in (torch.float32, "cpu", torch.device("cpu"), False, None) for one in wanted)
    return x if same and x.table is None and x.amounts.dtype == torch.float32 else NotImplemented


def _picked(x: Any, index: Any) -> Any:
    """A selection of rows, by slice, mask or index."""
    simple = isinstance(index, slice) or (isinstance(index, Tensor) and index.dim() == 1 and index.dtype != torch.uint8)
    if not isinstance(x, SparseFeatures) or x.table is not None or not simple:
        return NotImplemented
    columns, values = x.columns[index], x.amounts[index]
    return _like(x, columns.clone(), values.clone()) if isinstance(index, slice) else _like(x, columns, values)


def _select(x: Any, dim: int, index: Tensor) -> Any:
    return _picked(x, index) if dim in (0, -2) else NotImplemented


def _cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Any:
    parts = [one for one in tensors if isinstance(one, SparseFeatures) and one.table is None]
    if len(parts) < len(tensors) or dim != 0 or out is not None or len({_width(one) for one in parts}) > 1:
        return NotImplemented
    most = max(one.columns.shape[1] for one in parts)
    columns, values = (
        torch.cat([torch.nn.functional.pad(part, (0, most - part.shape[1])) for part in each])
        for each in ([one.columns for one in parts], [one.amounts for one in parts])
    )
    return _like(parts[0], columns, values)


def _linear(x: Any, weight: Tensor, bias: Tensor | None = None) -> Any:
    """Select rows of the weights and add them up."""
    if not is_sparse(x):
        return NotImplemented
    rows = torch.nn.functional.embedding_bag(x.columns, weight.t(), per_sample_weights=x.amounts, mode="sum")
    return rows if bias is None else rows + bias


def mixed_rows(first: SparseFeatures, second: SparseFeatures, share: float, places: Tensor) -> SparseFeatures:
    """share first + (1 - share) second, where the rows of the smaller table are placed at their positions in the larger
    one.
    """
    if len(first.columns) < len(second.columns):
        return mixed_rows(second, first, 1 - share, places)
    columns, values = (
        part.new_zeros(len(first.columns), part.shape[1]).index_copy_(0, places, part)
        for part in (second.columns, second.amounts)
    )
    both = torch.cat([first.columns, columns], dim=1), torch.cat([share * first.amounts, (1 - share) * values], dim=1)
    return _like(first, *both)


_FACTS = {
    Tensor.shape.__get__,  # type: ignore[attr-defined]
    Tensor.dtype.__get__,  # type: ignore[attr-defined]
    Tensor.device.__get__,  # type: ignore[attr-defined]
    Tensor.layout.__get__,  # type: ignore[attr-defined]
    Tensor.ndim.__get__,  # type: ignore[attr-defined]
    Tensor.requires_grad.__get__,  # type: ignore[attr-defined]
    Tensor.is_sparse.__get__,  # type: ignore[attr-defined]
    Tensor.is_sparse_csr.__get__,  # type: ignore[attr-defined]
    Tensor.is_nested.__get__,  # type: ignore[attr-defined]
    Tensor.is_cuda.__get__,  # type: ignore[attr-defined]
    Tensor.is_quantized.__get__,  # type: ignore[attr-defined]
    Tensor.is_meta.__get__,  # type: ignore[attr-defined]
    Tensor.size,
    Tensor.dim,
    Tensor.numel,
    Tensor.element_size,
    Tensor.is_floating_point,
    Tensor.is_complex,
    Tensor.__len__,
    torch.is_floating_point,
    torch.is_complex,
    torch.numel,
}
_KNOWN: dict[Any, Callable[..., Any]] = {
    Tensor.clone: _clone,
    Tensor.detach: _itself,
    Tensor.contiguous: _itself,
    Tensor.float: _itself,
    Tensor.cpu: _itself,
    Tensor.to: _itself,
    Tensor.__getitem__: _picked,
    Tensor.index_select: _select,
    torch.index_select: _select,
    torch.cat: _cat,
    torch.nn.functional.linear: _linear,
}
