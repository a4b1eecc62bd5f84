"""A stack of layers that aggregate with a fixed matrix: GCN, GIN and GraphSAGE."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.engine.fast.aggregation import Kind, layer_matrix, node_matrix
from bench.engine.fast.classes import Classes
from bench.engine.fast.dense import Dense, GCNDense, GINDense, SAGEDense, through_relu
from bench.engine.fast.graphs import Joined
from bench.engine.fast.parameters import Parameters
from bench.engine.fast.product import BothWays, Factored, Product, Rows, cheapest_rows

DENSE: dict[Kind, type[GCNDense] | type[GINDense] | type[SAGEDense]] = {
    "gcn": GCNDense,
    "gin": GINDense,
    "sage": SAGEDense,
}

Input = Rows | tuple[Rows, Rows]


class ConvolutionStack:
    """h_l = ReLU(dense_l(Q_l h_{l-1})); Q_1 X never changes and is made once."""

    def __init__(self, first: Input, products: Sequence[Product], dense: Sequence[Dense], last: Tensor) -> None:
        self.products, self.dense = products, dense
        self.inputs: list[Input] = [first] + [first] * len(products)
        self.outputs = [product.rows for product in products] + [last]

    @classmethod
    def of(
        cls, kind: Kind, joined: Joined, classes: Sequence[Classes], parameters: Parameters, width: int
    ) -> ConvolutionStack:
        nodes = node_matrix(joined, kind)
        first = first_input(kind, nodes, joined, classes)
        made: dict[tuple[int, int], BothWays] = {}
        products = []
        for before, after in itertools.pairwise(classes[1:]):
            key = id(before), id(after)
            if key not in made:
                made[key] = BothWays.of(layer_matrix(nodes, kind, before, after))
            products.append(Product(made[key], width))
        dense = dense_parts(kind, parameters, [part.count for part in classes[1:]])
        return cls(first, products, dense, torch.empty(classes[-1].count, width))

    def forward(self) -> Tensor:
        """Node embeddings after the last layer."""
        inputs = self.inputs
        for i, (dense, out) in enumerate(zip(self.dense, self.outputs, strict=True)):
            dense.forward(inputs[i], out)
            if i < len(self.products):
                inputs[i + 1] = self.products[i].forward()
        return self.outputs[-1]

    def backward(self, gradient: Tensor) -> None:
        """All weight gradients, from that of the last embeddings (which is overwritten)."""
        for i in reversed(range(len(self.dense))):
            through_relu(gradient, self.outputs[i])
            if i == 0:
                self.dense[0].backward(gradient, self.inputs[0], None)
            else:
                product = self.products[i - 1]
                self.dense[i].backward(gradient, self.inputs[i], product.gradient_rows)
                gradient = product.backward()


def first_input(kind: Kind, nodes: Factored, joined: Joined, classes: Sequence[Classes]) -> Input:
    """Q_1 X, in the form that the first dense part takes it."""
    features = sp.csr_array(joined.x[classes[0].stand_in].astype(np.float64))
    matrix = layer_matrix(nodes, kind, classes[0], classes[1]).times(features)
    if kind != "sage":
        return cheapest_rows(matrix)
    count = classes[1].count
    return cheapest_rows(sp.csr_array(matrix[:count])), cheapest_rows(sp.csr_array(matrix[count:]))


def dense_parts(kind: Kind, parameters: Parameters, rows: Sequence[int]) -> list[Dense]:
    """The dense part of every layer, each for its number of rows."""
    return [DENSE[kind](parameters, f"backbone.convs.{i}", count) for i, count in enumerate(rows)]
