"""Handwritten graph attention: GATConv's forward and backward passes over one list of entries for all heads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.learning.fast.graphs.classes import Classes
from bench.learning.fast.graphs.joined import Joined
from bench.learning.fast.ops.dense import through_relu
from bench.learning.fast.ops.dropout import Dropout, Mask
from bench.learning.fast.ops.factored import numbered, transpose
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.product import Bag, Rows, cheapest_rows, multiply, multiply_transposed
from bench.learning.fast.ops.torch_private import ADD, entry_gradients

SLOPE = 0.2  # GATConv's leaky ReLU


class Entries:
    """Pairs of attending and attended nodes. With h heads, node i and head m are row i*h + m, so one list serves all
    heads.
    """

    def __init__(self, counts: sp.csr_array, parents: np.ndarray, heads: int) -> None:
        numbers = numbered(counts)
        if heads > 1:
            numbers = sp.csr_array(sp.kron(numbers, sp.eye_array(heads, dtype=np.int64), format="csr"))
        rows = np.repeat(np.arange(numbers.shape[0]), np.diff(numbers.indptr))
        parent_rows = (parents[:, None] * heads + np.arange(heads)).ravel()
        self.number = torch.from_numpy(numbers.data - 1)
        self.bag, self.starts = Bag(numbers), numbers.indptr[:-1]
        self.row, self.column = torch.from_numpy(rows), torch.from_numpy(numbers.indices.astype(np.int64))
        self.row_index = torch.from_numpy(rows.astype(np.int32))
        self.parent = torch.from_numpy(parent_rows)
        self.parent_of_entry = torch.from_numpy(parent_rows[rows])
        turned = transpose(numbered(numbers))
        self.order, self.turned = torch.from_numpy(turned.data - 1), Bag(turned)
        self.set_counts(torch.from_numpy(counts.data).to(torch.get_default_dtype()))

    def set_counts(self, counts: Tensor) -> None:
        """Set the multiplicity of each pair in the softmax: equal neighbors are counted together, dropped ones not at
        all.
        """
        self.log_count = counts.log().index_select(0, self.number)

    def largest(self, values: Tensor) -> Tensor:
        return torch.from_numpy(np.maximum.reduceat(values.numpy(), self.starts))

    def total(self, values: Tensor) -> Tensor:
        """Sum over the entries of each row; none is empty, since every node attends to itself."""
        return torch.from_numpy(np.add.reduceat(values.numpy(), self.starts))


class AttentionLayer:
    """out_i = ReLU(b + sum_j a_ij W h_j), a = softmax over j of leaky(att_src . W h_j + att_dst . W h_i)."""

    def __init__(
        self,
        parameters: Parameters,
        name: str,
        entries: Entries,
        columns: int,
        rows: int,
        dropout: Dropout | None,
    ) -> None:
        weight, gradient = parameters.weight, parameters.gradient
        self.weight, self.weight_gradient = weight[f"{name}.lin.weight"], gradient[f"{name}.lin.weight"]
        self.send, self.send_gradient = weight[f"{name}.att_src"], gradient[f"{name}.att_src"]
        self.receive, self.receive_gradient = weight[f"{name}.att_dst"], gradient[f"{name}.att_dst"]
        self.bias, self.bias_gradient = weight[f"{name}.bias"], gradient[f"{name}.bias"]
        self.entries, (_, self.heads, self.depth) = entries, self.send.shape
        self.projected = torch.empty(columns, self.heads * self.depth)
        self.cube = self.projected.view(columns, self.heads, self.depth)
        self.table = self.projected.view(columns * self.heads, self.depth)
        self.out = torch.empty(rows, self.heads * self.depth)
        self.mask = Mask(dropout, rows, self.heads * self.depth) if dropout else None
        self.score = self.attention = self.bias

    def forward(self, x: Rows) -> Tensor:
        entries = self.entries
        multiply(x, self.weight, self.projected)
        send = (self.cube * self.send).sum(dim=2).view(-1)
        receive = (self.cube * self.receive).sum(dim=2).view(-1)
        self.score = send.index_select(0, entries.column).add_(receive.index_select(0, entries.parent_of_entry))
        weight = torch.nn.functional.leaky_relu(self.score, SLOPE).add_(entries.log_count)
        weight.sub_(entries.largest(weight).index_select(0, entries.row)).exp_()
        self.attention = weight.div_(entries.total(weight).index_select(0, entries.row))
        entries.bag.values = self.attention
        torch.add(entries.bag(self.table).view(self.out.shape), self.bias, out=self.out).relu_()
        return self.out if self.mask is None else self.mask.forward(self.out)

    def backward(self, gradient: Tensor, x: Rows, wanted: bool) -> Tensor | None:
        """Weight gradients from the gradient of the output (which is overwritten); the gradient of x on request."""
        entries, columns = self.entries, self.cube.shape[0]
        through_relu(gradient if self.mask is None else self.mask.backward(gradient), self.out)
        torch.sum(gradient, 0, out=self.bias_gradient)
        by_row = gradient.view(-1, self.depth)
        by_entry = entry_gradients(by_row, self.table, entries.bag.index, entries.bag.offsets, entries.row_index, ADD)
        # Computed from the entries: if a node attends only to itself, the difference is exactly zero.
        shared = entries.total(by_entry * self.attention)
        by_entry.sub_(shared.index_select(0, entries.row)).mul_(self.attention)
        by_score = torch.where(self.score > 0, by_entry, by_entry * SLOPE)
        send, receive = torch.zeros(2, columns * self.heads)
        send.index_add_(0, entries.column, by_score)
        receive.index_add_(0, entries.parent, entries.total(by_score))
        entries.turned.values = self.attention.index_select(0, entries.order)
        projected = entries.turned(by_row).view(self.cube.shape)
        send_cube, receive_cube = send.view(columns, self.heads, 1), receive.view(columns, self.heads, 1)
        torch.sum(send_cube * self.cube, 0, keepdim=True, out=self.send_gradient)
        torch.sum(receive_cube * self.cube, 0, keepdim=True, out=self.receive_gradient)
        projected.addcmul_(send_cube, self.send).addcmul_(receive_cube, self.receive)
        flat = projected.view(self.projected.shape)
        multiply_transposed(x, flat, self.weight_gradient)
        return torch.mm(flat, self.weight.t()) if wanted else None


class AttentionStack:
    """Attention layers, one after another."""

    def __init__(self, first: Rows, layers: Sequence[AttentionLayer]) -> None:
        self.first, self.layers = first, layers

    @classmethod
    def of(
        cls,
        joined: Joined,
        classes: Sequence[Classes],
        parameters: Parameters,
        heads: int,
        dropout: Dropout | None,
    ) -> AttentionStack:
        nodes = joined.nodes
        counts = sp.csr_array(joined.edges + sp.eye_array(nodes, format="csr"))
        made: dict[tuple[int, int], Entries] = {}  # layers over the same classes share their entries
        layers = []
        for i, (before, after) in enumerate(itertools.pairwise(classes)):
            key = id(before), id(after)
            if key not in made:
                merged = sp.csr_array(counts[after.stand_in] @ before.members())
                made[key] = Entries(merged, before.of_node[after.stand_in], heads)
            name = f"backbone.convs.{i}"
            layers.append(AttentionLayer(parameters, name, made[key], before.count, after.count, dropout))
        features = sp.csr_array(joined.x[classes[0].stand_in].astype(np.float64))
        return cls(cheapest_rows(features), layers)

    def forward(self) -> Tensor:
        x: Rows = self.first
        for layer in self.layers:
            x = layer.forward(x)
        return self.layers[-1].out

    def backward(self, gradient: Tensor) -> None:
        for i in reversed(range(len(self.layers))):
            layer = self.layers[i]
            x = self.layers[i - 1].out if i else self.first
            needed = layer.backward(gradient, x, wanted=i > 0)
            if needed is not None:
                gradient = needed
