"""The layers of a convolution stack: products with weights, aggregation and ReLU, in both directions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bench.learning.fast.graphs.aggregation import Kind
from bench.learning.fast.ops.compiled import Compiled, compiled
from bench.learning.fast.ops.dense import Affine, Linear, through_relu
from bench.learning.fast.ops.dropout import Dropout, Mask
from bench.learning.fast.ops.fused import ReluBackward, ReluForward, RowsForward, SumsForward
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.product import BothWays, Direction, Half, Rows, SparseRows
from bench.learning.fast.training.units import Units

# The names of a layer's weights before its first ReLU, of its bias, and of a second linear map, if any.
NAMES: dict[Kind, tuple[list[str], str, str | None]] = {
    "gcn": (["lin.weight"], "bias", None),
    "gin": (["mlp.0.weight"], "mlp.0.bias", "mlp.2"),
    "sage": (["neighbors.weight", "own.weight"], "neighbors.bias", None),
}


class Workspace:
    """Buffers shared by the layers, allocated on first use."""

    def __init__(self, width: int, most_rows: int) -> None:
        self.width, self.size = width, most_rows * width
        self.flat: dict[int, Tensor] = {}

    def rows(self, which: int, count: int, width: int) -> Tensor:
        if which not in self.flat:
            self.flat[which] = torch.empty(self.size)
        return self.flat[which][: count * width].view(count, width)


class Layer:
    """The common end of all layers: ReLU, in GIN a second linear map with its own ReLU, and optional dropout."""

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
        self.hidden = self.front = self.output  # `front`: the output columns that may be nonzero
        self.mask = Mask(dropout, rows, work.width) if dropout else None
        self.units: Units | None = None
        self.work, self.rows, self.below, self.bound = work, rows, below, (0, 0)
        self.width = work.width  # how many of the units may be nonzero
        self.relu: ReluForward | None = None

    def bind(self) -> bool:
        """Restrict the following computations to the units in use, here and below; returns whether anything changed."""
        widths = self.below.width if self.below else len(self.whole.weights[0]), self.width
        if self.bound == widths:
            return False
        self.bound, self.affine = widths, self.whole.front(*widths)
        self.gradient_rows = self.work.rows(0, self.rows, self.width)  # where the layer above writes the gradient
        if self.relu is not None:
            self.relu.narrow(self.width)
        return True

    def finish(self, make: Callable[[], Tensor]) -> None:
        """Everything after `make`, which computes the input of the ReLU."""
        relu, units = self.relu, self.units
        look = units is not None and units.look_now()
        if relu is None or look or not relu.done(units.used if units else self.width):
            hidden = make().relu_()
            if units is not None:
                hidden = units.settle(hidden, look)
                self.width = units.width
                self.bind()
            if relu is not None:
                relu.take(hidden)
        if relu is not None:
            hidden = relu.front
        if self.second is None:
            self.output = hidden
        else:
            self.hidden = hidden
            self.second.forward(hidden, self.output).relu_()
        self.front = self.output if self.output.shape[1] == self.width else self.output[:, : self.width]
        if self.mask is not None:
            self.mask.forward(self.output)

    def at_first_relu(self, gradient: Tensor, scratch: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient after the first ReLU, and the output of that ReLU."""
        if self.mask is not None:
            self.mask.backward(gradient)
        if self.second is None:
            return gradient, self.front
        self.second.backward(through_relu(gradient, self.output), self.hidden, scratch)
        return scratch, self.hidden


class FirstLayer(Layer):
    """Over Q_1 X, which is computed in advance."""

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
        self.functions = None if self.second else usable(dropout)
        # With compiled functions, the ReLU has its own buffer, so its input can be in a shared one.
        self.place = work.rows(0, rows, work.width) if self.functions else torch.empty(rows, work.width)
        self.picked: SparseRows | None = None  # the input, if it is sparse and passed to compiled functions
        self.give(inputs)
        self.bind()

    def give(self, inputs: tuple[Rows, ...]) -> None:
        """Set the input; a sparse input keeps its positions and changes only its values."""
        self.inputs = inputs
        if self.relu is not None or self.functions is None or not inputs:
            return
        if len(inputs) == 1 and isinstance(inputs[0], SparseRows):
            self.picked, weight = inputs[0], self.whole.weights[0]
            product = Half(Direction(self.picked.matrix, None, len(weight), 0), weight)
            self.relu = SumsForward(self.functions, product, self.rows, self.whole.bias, None)
        else:
            self.relu = RowsForward(self.functions, self.place)
        self.bound = (0, 0)

    def bind(self) -> bool:
        if changed := super().bind():
            self.scratch = self.work.rows(1, self.rows, self.width)
            if self.functions is not None and self.picked is not None:
                product = Half(Direction(self.picked.transposed, None, self.rows, 0), self.scratch)
                self.relu_back = ReluBackward(self.functions, product, self.affine.weight_gradients[0], None)
        return changed

    def forward(self) -> None:
        self.bind()
        if self.picked is None:
            self.affine.forward(self.inputs, self.place)
        self.finish(self.before_relu)

    def before_relu(self) -> Tensor:
        if self.picked is not None:
            self.affine.forward(self.inputs, self.place)
        return self.place

    def backward(self, gradient: Tensor) -> None:
        if self.picked is not None:
            self.relu_back(gradient, self.front)
            torch.sum(self.scratch, 0, out=self.affine.bias_gradient)
        else:
            before_relu = through_relu(*self.at_first_relu(gradient, self.scratch), self.scratch)
            self.affine.backward(before_relu, self.inputs)


class NextLayer(Layer):
    """ReLU(Q (h W) + b), with Q, the positions of further weights and the bias in one matrix."""

    def __init__(
        self, kind: Kind, parameters: Parameters, number: int, matrix: BothWays, below: Layer, dropout: Dropout | None
    ) -> None:
        work, rows, columns = below.work, matrix.backward.columns, matrix.forward.columns
        super().__init__(kind, parameters, number, rows, work, dropout, below)
        self.matrix, self.under, self.columns = matrix, below, columns  # `under` is `below`, never None
        parts = len(self.whole.weights)
        self.before = (columns - 1) // parts
        source = work.rows(1, columns + matrix.forward.sums, work.width)
        self.aggregate = Half(matrix.forward, source)
        self.places = list(source[: columns - 1].split(self.before))
        self.bias_row = source[columns - 1]
        self.functions = usable(dropout)
        if self.functions is not None:
            self.relu = SumsForward(self.functions, self.aggregate, rows, self.whole.bias, self.bias_row)
        self.bind()

    def bind(self) -> bool:
        if changed := super().bind():
            backward = self.matrix.backward
            # The gradient arrives in buffer 0 and leaves in it; GIN's second map reads it while writing the next one.
            place = 1 if self.second else 0
            self.spread_back = Half(backward, self.work.rows(place, self.rows + backward.sums, self.width))
            if self.functions is not None:
                out = self.work.rows(place + 1, self.columns, self.width)
                self.relu_back = ReluBackward(self.functions, self.spread_back, out, self.affine.bias_gradient)
                self.parts = list(out[:-1].split(self.before))
        return changed

    def forward(self) -> None:
        self.bind()
        for weight, place in zip(self.affine.weights, self.places, strict=True):
            torch.mm(self.under.front, weight, out=place)
        self.finish(self.before_relu)

    def before_relu(self) -> Tensor:
        self.bias_row.copy_(self.affine.bias)
        return self.aggregate()

    def backward(self, gradient: Tensor) -> Tensor:
        """Weight gradients; returns the gradient of the rows below."""
        self.spread(*self.at_first_relu(gradient, self.spread_back.rows))
        affine, out, turned = self.affine, self.under.gradient_rows, self.under.front.t()
        for i, part in enumerate(self.parts):
            torch.mm(turned, part, out=affine.weight_gradients[i])
            if i == 0:
                torch.mm(part, affine.turned[i], out=out)
            else:
                out.addmm_(part, affine.turned[i])
        return out

    def spread(self, gradient: Tensor, output: Tensor) -> None:
        """Write the gradient of each product with the weights to `parts`, and that of the bias to its place."""
        if self.functions is not None:
            self.relu_back(gradient, output)
            return
        through_relu(gradient, output, self.spread_back.rows)
        spread = self.spread_back()
        self.affine.bias_gradient.copy_(spread[-1])
        self.parts = list(spread[:-1].split(self.before))


def usable(dropout: Dropout | None) -> Compiled | None:
    """The compiled functions, if they support these numbers and no mask is in between."""
    return compiled() if dropout is None and torch.get_default_dtype() == torch.float32 else None
