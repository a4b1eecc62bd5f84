"""The dense part of one layer, forward and backward by hand: what follows the sparse product, ReLU included."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from bench.engine.fast.parameters import Parameters
from bench.engine.fast.product import Rows, multiply_transposed

relu_backward = torch.ops.aten.threshold_backward.grad_input


def through_relu(gradient: Tensor, output: Tensor) -> Tensor:
    """Zero the gradient, in place, where ReLU gave zero."""
    relu_backward(gradient, output, 0, grad_input=gradient)
    return gradient


class Linear:
    """y = x W + b with its gradients, on views into the flat buffers."""

    def __init__(self, parameters: Parameters, name: str, bias: str | None = None) -> None:
        self.weight, self.weight_gradient = parameters.weight[f"{name}.weight"], parameters.gradient[f"{name}.weight"]
        bias = bias or f"{name}.bias"
        self.bias, self.bias_gradient = parameters.weight[bias], parameters.gradient[bias]
        self.turned = self.weight.t()

    def forward(self, x: Rows, out: Tensor) -> Tensor:
        if isinstance(x, Tensor):
            return torch.addmm(self.bias, x, self.weight, out=out)
        return torch.add(x.matrix(self.weight), self.bias, out=out)

    def backward(self, gradient: Tensor, x: Rows, out: Tensor | None) -> None:
        """Write the gradients of weight and bias, and that of x to `out` if it is wanted."""
        multiply_transposed(x, gradient, self.weight_gradient)
        torch.sum(gradient, 0, out=self.bias_gradient)
        if out is not None:
            torch.mm(gradient, self.turned, out=out)


class Dense(Protocol):
    """`forward` writes ReLU(f(x)) to `out`; `backward` gets the gradient before that ReLU."""

    def forward(self, x: Any, out: Tensor) -> None: ...

    def backward(self, gradient: Tensor, x: Any, out: Tensor | None) -> None: ...


class GCNDense:
    """Aggregate, then one linear map."""

    def __init__(self, parameters: Parameters, name: str, rows: int) -> None:
        self.linear = Linear(parameters, f"{name}.lin", bias=f"{name}.bias")

    def forward(self, x: Rows, out: Tensor) -> None:
        self.linear.forward(x, out).relu_()

    def backward(self, gradient: Tensor, x: Rows, out: Tensor | None) -> None:
        self.linear.backward(gradient, x, out)


class GINDense:
    """Aggregate, then two linear maps with a ReLU between."""

    def __init__(self, parameters: Parameters, name: str, rows: int) -> None:
        self.first, self.second = Linear(parameters, f"{name}.mlp.0"), Linear(parameters, f"{name}.mlp.2")
        self.hidden, self.hidden_gradient = torch.empty(2, rows, self.first.weight.shape[1])

    def forward(self, x: Rows, out: Tensor) -> None:
        self.second.forward(self.first.forward(x, self.hidden).relu_(), out).relu_()

    def backward(self, gradient: Tensor, x: Rows, out: Tensor | None) -> None:
        self.second.backward(gradient, self.hidden, self.hidden_gradient)
        self.first.backward(through_relu(self.hidden_gradient, self.hidden), x, out)


class SAGEDense:
    """One linear map for the neighbours' means, one for the nodes' own rows, which follow them in x."""

    def __init__(self, parameters: Parameters, name: str, rows: int) -> None:
        self.rows, self.neighbours = rows, Linear(parameters, f"{name}.neighbours")
        self.own, self.own_gradient = parameters.weight[f"{name}.own.weight"], parameters.gradient[f"{name}.own.weight"]

    def halves(self, x: Tensor | tuple[Rows, Rows]) -> tuple[Rows, Rows]:
        return (x[: self.rows], x[self.rows :]) if isinstance(x, Tensor) else x

    def forward(self, x: Tensor | tuple[Rows, Rows], out: Tensor) -> None:
        means, own = self.halves(x)
        self.neighbours.forward(means, out)
        if isinstance(own, Tensor):
            out.addmm_(own, self.own).relu_()
        else:
            out.add_(own.matrix(self.own)).relu_()

    def backward(self, gradient: Tensor, x: Tensor | tuple[Rows, Rows], out: Tensor | None) -> None:
        means, own = self.halves(x)
        self.neighbours.backward(gradient, means, None if out is None else out[: self.rows])
        multiply_transposed(own, gradient, self.own_gradient)
        if out is not None:
            torch.mm(gradient, self.own.t(), out=out[self.rows :])
