"""A stack of layers that aggregate with a fixed matrix: GCN, GIN and GraphSAGE.

Each layer multiplies by its weights first, over one row a class of the layer before (there are fewer of them), and
aggregates then. The bias is one more row that every node receives, so that its gradient comes with the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from bench.engine.fast.aggregation import Kind, layer_matrix, node_matrix
from bench.engine.fast.classes import Classes
from bench.engine.fast.dense import Affine, Linear, through_relu
from bench.engine.fast.dropout import Dropout, Mask
from bench.engine.fast.graphs import Joined
from bench.engine.fast.parameters import Parameters
from bench.engine.fast.product import BothWays, Factored, Half, Rows, cheapest_rows

# The names of a layer's weights before its first ReLU, of its bias, and of a second linear map if it has one.
NAMES: dict[Kind, tuple[list[str], str, str | None]] = {
    "gcn": (["lin.weight"], "bias", None),
    "gin": (["mlp.0.weight"], "mlp.0.bias", "mlp.2"),
    "sage": (["neighbours.weight", "own.weight"], "neighbours.bias", None),
}


class Workspace:
    """Buffers that the layers use one after another, each as large as the largest asks for."""

    def __init__(self, width: int) -> None:
        self.width, self.flat = width, [torch.empty(0) for _ in range(2)]

    def reserve(self, rows: int) -> None:
        self.flat = [flat if len(flat) >= rows * self.width else torch.empty(rows * self.width) for flat in self.flat]

    def rows(self, which: int, count: int) -> Tensor:
        return self.flat[which][: count * self.width].view(count, self.width)


class Layer:
    """What all layers end with: ReLU, in GIN a second linear map with its own ReLU, dropout if there is one."""

    def __init__(
        self, kind: Kind, parameters: Parameters, number: int, rows: int, work: Workspace, dropout: Dropout | None
    ) -> None:
        names, bias, second = NAMES[kind]
        prefix = f"backbone.convs.{number}"
        self.affine = Affine(parameters, [f"{prefix}.{name}" for name in names], f"{prefix}.{bias}")
        self.second = Linear(parameters, f"{prefix}.{second}") if second else None
        self.output = torch.empty(rows, work.width) if second else torch.empty(0)
        self.hidden = self.output
        self.mask = Mask(dropout, rows, work.width) if dropout else None
        self.gradient_rows = work.rows(0, rows)  # where the layer above writes the gradient of the output

    def finish(self, before_relu: Tensor) -> Tensor:
        if self.second is None:
            self.output = before_relu.relu_()
        else:
            self.hidden = before_relu.relu_()
            self.second.forward(self.hidden, self.output).relu_()
        return self.output if self.mask is None else self.mask.forward(self.output)

    def unfinish(self, gradient: Tensor, out: Tensor) -> Tensor:
        """The gradient before the first ReLU, written to `out`."""
        if self.mask is not None:
            self.mask.backward(gradient)
        if self.second is None:
            return through_relu(gradient, self.output, out)
        self.second.backward(through_relu(gradient, self.output), self.hidden, out)
        return through_relu(out, self.hidden)


class FirstLayer(Layer):
    """Over Q_1 X, which is made beforehand."""

    def __init__(
        self,
        kind: Kind,
        parameters: Parameters,
        inputs: tuple[Rows, ...],
        rows: int,
        work: Workspace,
        dropout: Dropout | None,
    ) -> None:
        super().__init__(kind, parameters, 0, rows, work, dropout)
        self.inputs = inputs
        self.before_relu, self.scratch = torch.empty(rows, work.width), work.rows(1, rows)

    def forward(self) -> Tensor:
        return self.finish(self.affine.forward(self.inputs, self.before_relu))

    def backward(self, gradient: Tensor) -> None:
        self.affine.backward(self.unfinish(gradient, self.scratch), self.inputs)


class NextLayer(Layer):
    """ReLU(Q (h W) + b), with Q, further weights' places and the bias in one matrix."""

    def __init__(
        self,
        kind: Kind,
        parameters: Parameters,
        number: int,
        matrix: BothWays,
        work: Workspace,
        dropout: Dropout | None,
    ) -> None:
        rows = matrix.backward.columns
        super().__init__(kind, parameters, number, rows, work, dropout)
        parts = len(self.affine.weights)
        self.before = (matrix.forward.columns - 1) // parts
        source = work.rows(1, matrix.forward.columns + matrix.forward.sums)
        # GIN's gradient arrives in the first buffer while its second map still reads it.
        back_source = work.rows(1 if self.second else 0, rows + matrix.backward.sums)
        self.aggregate, self.spread_back = Half(matrix.forward, source), Half(matrix.backward, back_source)
        self.places = [source[i * self.before : (i + 1) * self.before] for i in range(parts)]
        self.bias_place = source[parts * self.before]

    def forward(self, x: Tensor) -> Tensor:
        for weight, place in zip(self.affine.weights, self.places, strict=True):
            torch.mm(x, weight, out=place)
        self.bias_place.copy_(self.affine.bias)
        return self.finish(self.aggregate())

    def backward(self, gradient: Tensor, x: Tensor, out: Tensor) -> Tensor:
        """Weight gradients, and that of x written to `out`."""
        affine = self.affine
        self.unfinish(gradient, self.spread_back.rows)
        spread = self.spread_back()
        affine.bias_gradient.copy_(spread[-1])
        turned = x.t()
        for i, (weight, weight_gradient) in enumerate(zip(affine.turned, affine.weight_gradients, strict=True)):
            part = spread[i * self.before : (i + 1) * self.before]
            torch.mm(turned, part, out=weight_gradient)
            if i == 0:
                torch.mm(part, weight, out=out)
            else:
                out.addmm_(part, weight)
        return out


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
        work = Workspace(width)
        work.reserve(first_rows)
        for matrix in matrices:
            for way in (matrix.forward, matrix.backward):
                work.reserve(way.columns + way.sums)
        self.first = FirstLayer(kind, parameters, first, first_rows, work, dropout)
        self.rest = [NextLayer(kind, parameters, i + 1, matrix, work, dropout) for i, matrix in enumerate(matrices)]

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
        """Node embeddings after the last layer."""
        x = self.first.forward()
        for layer in self.rest:
            x = layer.forward(x)
        return x

    def backward(self, gradient: Tensor) -> None:
        """All weight gradients, from that of the last embeddings (which is overwritten)."""
        below: list[Layer] = [self.first, *self.rest]
        for layer, before in zip(reversed(self.rest), reversed(below[:-1]), strict=True):
            gradient = layer.backward(gradient, before.output, before.gradient_rows)
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
