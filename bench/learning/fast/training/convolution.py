"""A stack of layers that aggregate with a fixed matrix: GCN, GIN and GraphSAGE.

Each layer first multiplies by its weights, over one row per class of the previous layer (of which there are fewer), and
then aggregates. The bias is an additional row that every node receives, so its gradient is computed with the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from torch import Tensor

from bench.learning.fast.graphs.aggregation import Kind, layer_matrix, node_matrix
from bench.learning.fast.graphs.classes import Classes
from bench.learning.fast.graphs.joined import Joined
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.factored import Factored
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.product import BothWays, Rows, cheapest_rows
from bench.learning.fast.training.layers import FirstLayer, Layer, NextLayer, Workspace
from bench.learning.fast.training.units import STEP, SUM_STEP, Units


class ConvolutionStack:
    """h_l = ReLU(Q_l h_{l-1} W_l + b_l); Q_1 X is given."""

    def __init__(
        self,
        kind: Kind,
        parameters: Parameters,
        first: tuple[Rows, ...],
        first_rows: int,
        matrices: Sequence[BothWays],
        width: int,
        dropout: Dropout | None,
    ) -> None:
        ways = [way for matrix in matrices for way in (matrix.forward, matrix.backward)]
        work = Workspace(width, max([first_rows, *(way.columns + way.sums for way in ways)]))
        self.first = FirstLayer(kind, parameters, first, first_rows, work, dropout)
        self.layers: list[Layer] = [self.first]
        self.rest: list[NextLayer] = []
        for number, matrix in enumerate(matrices, start=1):
            self.rest.append(NextLayer(kind, parameters, number, matrix, self.layers[-1], dropout))
            self.layers.append(self.rest[-1])

    def leave_out_unused(self, parameters: Parameters) -> None:
        """From now on, skip units that no node uses; for layers that end with one ReLU and without dropout."""
        for layer, above in itertools.zip_longest(self.layers, self.rest):
            if layer.second is None and layer.mask is None:
                users = above.weight_names if above else ["head.0.weight"]
                step = SUM_STEP if layer is self.first else STEP
                layer.units = Units(parameters, [*layer.weight_names, layer.bias_name], users, step)

    @classmethod
    def of(
        cls,
        kind: Kind,
        joined: Joined,
        classes: Sequence[Classes],
        parameters: Parameters,
        width: int,
        dropout: Dropout | None,
    ) -> ConvolutionStack:
        nodes = node_matrix(joined, kind)
        made: dict[tuple[int, int], BothWays] = {}  # layers over the same classes share their matrix
        matrices = []
        for before, after in itertools.pairwise(classes[1:]):
            key = id(before), id(after)
            if key not in made:
                made[key] = BothWays.of(layer_matrix(nodes, kind, before, after).with_bias())
            matrices.append(made[key])
        first = first_input(kind, nodes, joined, classes)
        return cls(kind, parameters, first, classes[1].count, matrices, width, dropout)

    def forward(self) -> Tensor:
        """Node embeddings after the last layer, without the units that no node uses."""
        self.first.forward()
        for layer in self.rest:
            layer.forward()
        return self.layers[-1].front

    def backward(self, gradient: Tensor) -> None:
        """All weight gradients, from the gradient of the last embeddings (which is overwritten)."""
        for layer in reversed(self.rest):
            gradient = layer.backward(gradient)
        self.first.backward(gradient)


def first_input(kind: Kind, nodes: Factored, joined: Joined, classes: Sequence[Classes]) -> tuple[Rows, ...]:
    """Q_1 X, one part for each of the layer's weights."""
    features = sp.csr_array(joined.x[classes[0].stand_in].astype(np.float64))
    matrix = layer_matrix(nodes, kind, classes[0], classes[1])
    if kind != "sage":
        return (cheapest_rows(matrix.times(features)),)
    blank = sp.csr_array(features.shape)
    means, own = sp.vstack([features, blank], format="csr"), sp.vstack([blank, features], format="csr")
    return cheapest_rows(matrix.times(means)), cheapest_rows(matrix.times(own))
