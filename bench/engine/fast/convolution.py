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
from bench.engine.fast.units import STEP, SUM_STEP, Units

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

    def rows(self, which: int, count: int, width: int) -> Tensor:
        return self.flat[which][: count * width].view(count, width)


class Layer:
    """What all layers end with: ReLU, in GIN a second linear map with its own ReLU, dropout if there is one."""

    def __init__(
        self,
        kind: Kind,
        parameters: Parameters,
        number: int,
        rows: int,
        work: Workspace,
        dropout: Dropout | None,
        below: Layer | None = None,
    ) -> None:
        names, bias, second = NAMES[kind]
        prefix = f"backbone.convs.{number}"
        self.weight_names, self.bias_name = [f"{prefix}.{name}" for name in names], f"{prefix}.{bias}"
        self.whole = self.affine = Affine.of(parameters, self.weight_names, self.bias_name)
        self.second = Linear(parameters, f"{prefix}.{second}") if second else None
        self.output = torch.empty(rows, work.width) if second else torch.empty(0)
        self.hidden = self.front = self.output  # `front`: the columns of the output that may differ from 0
        self.mask = Mask(dropout, rows, work.width) if dropout else None
        self.units: Units | None = None
        self.work, self.rows, self.below, self.bound = work, rows, below, (0, 0)
        self.width = work.width  # how many of the units may differ from 0

    def bind(self) -> bool:
        """Narrow what follows to the units that are in use, here and below; whether there was anything to do."""
        widths = self.below.width if self.below else len(self.whole.weights[0]), self.width
        if self.bound == widths:
            return False
        self.bound, self.affine = widths, self.whole.front(*widths)
        self.gradient_rows = self.work.rows(0, self.rows, self.width)  # where the layer above writes the gradient
        return True

    def finish(self, before_relu: Tensor) -> None:
        if self.second is None:
            self.output = before_relu.relu_()
        else:
            self.hidden = before_relu.relu_()
            self.second.forward(self.hidden, self.output).relu_()
        if self.units is not None:
            self.output = self.units.settle(self.output)
            self.width = self.units.width
            self.bind()
        self.front = self.output if self.width == self.work.width else self.output[:, : self.width]
        if self.mask is not None:
            self.mask.forward(self.output)

    def unfinish(self, gradient: Tensor, out: Tensor) -> Tensor:
        """The gradient before the first ReLU, written to `out`."""
        if self.mask is not None:
            self.mask.backward(gradient)
        if self.second is None:
            return through_relu(gradient, self.front, out)
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
        self.inputs, self.before_relu = inputs, torch.empty(rows, work.width)
        self.bind()

    def bind(self) -> bool:
        if changed := super().bind():
            self.scratch = self.work.rows(1, self.rows, self.width)
        return changed

    def forward(self) -> None:
        self.finish(self.affine.forward(self.inputs, self.before_relu))

    def backward(self, gradient: Tensor) -> None:
        self.affine.backward(self.unfinish(gradient, self.scratch), self.inputs)


class NextLayer(Layer):
    """ReLU(Q (h W) + b), with Q, further weights' places and the bias in one matrix."""

    def __init__(
        self, kind: Kind, parameters: Parameters, number: int, matrix: BothWays, below: Layer, dropout: Dropout | None
    ) -> None:
        work, rows, columns = below.work, matrix.backward.columns, matrix.forward.columns
        super().__init__(kind, parameters, number, rows, work, dropout, below)
        self.matrix, self.under, parts = matrix, below, len(self.whole.weights)  # `below`, and always there
        self.before = (columns - 1) // parts
        source = work.rows(1, columns + matrix.forward.sums, work.width)
        self.aggregate = Half(matrix.forward, source)
        self.places = [source[i * self.before : (i + 1) * self.before] for i in range(parts)]
        self.bias_place = source[parts * self.before]
        self.bind()

    def bind(self) -> bool:
        if changed := super().bind():
            backward = self.matrix.backward
            # GIN's gradient arrives in the first buffer while its second map still reads it.
            source = self.work.rows(1 if self.second else 0, self.rows + backward.sums, self.width)
            self.spread_back = Half(backward, source)
        return changed

    def forward(self) -> None:
        self.bind()
        for weight, place in zip(self.affine.weights, self.places, strict=True):
            torch.mm(self.under.front, weight, out=place)
        self.bias_place.copy_(self.affine.bias)
        self.finish(self.aggregate())

    def backward(self, gradient: Tensor) -> Tensor:
        """Weight gradients; returns that of the rows below."""
        affine, out = self.affine, self.under.gradient_rows
        self.unfinish(gradient, self.spread_back.rows)
        spread = self.spread_back()
        affine.bias_gradient.copy_(spread[-1])
        turned = self.under.front.t()
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
        self.layers: list[Layer] = [self.first]
        self.rest: list[NextLayer] = []
        for number, matrix in enumerate(matrices, start=1):
            self.rest.append(NextLayer(kind, parameters, number, matrix, self.layers[-1], dropout))
            self.layers.append(self.rest[-1])

    def leave_out_unused(self, parameters: Parameters) -> None:
        """From now on, units that no node uses cost nothing; for layers that end with one ReLU and no dropout."""
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
        """Node embeddings after the last layer."""
        self.first.forward()
        for layer in self.rest:
            layer.forward()
        return self.layers[-1].output

    def backward(self, gradient: Tensor) -> None:
        """All weight gradients, from that of the last embeddings (which is overwritten)."""
        gradient = gradient[:, : self.layers[-1].width]
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
