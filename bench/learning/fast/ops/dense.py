"""Handwritten dense layers on views of the flat buffers of weights and gradients."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.product import Rows, multiply_transposed
from bench.learning.fast.ops.torch_private import relu_backward


def through_relu(gradient: Tensor, output: Tensor, out: Tensor | None = None) -> Tensor:
    """The gradient before a ReLU with this `output`; overwrites the given gradient unless `out` is given."""
    place = gradient if out is None else out
    relu_backward(gradient, output, 0, grad_input=place)
    return place


class Linear:
    """y = x W + b with its gradients."""

    def __init__(self, parameters: Parameters, name: str) -> None:
        self.weight, self.weight_gradient = parameters.weight[f"{name}.weight"], parameters.gradient[f"{name}.weight"]
        self.bias, self.bias_gradient = parameters.weight[f"{name}.bias"], parameters.gradient[f"{name}.bias"]
        self.turned = self.weight.t()

    def front(self, inputs: int) -> Linear:
        """For the first inputs only; the others are 0, and so are the gradients of their rows."""
        narrow = copy(self)
        narrow.weight, narrow.weight_gradient = self.weight[:inputs], self.weight_gradient[:inputs]
        narrow.turned = narrow.weight.t()
        return narrow

    def forward(self, x: Tensor, out: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight, out=out)

    def backward(self, gradient: Tensor, x: Tensor, out: Tensor) -> None:
        """Write the gradients of weight and bias, and that of x to `out`."""
        torch.mm(x.t(), gradient, out=self.weight_gradient)
        torch.sum(gradient, 0, out=self.bias_gradient)
        torch.mm(gradient, self.turned, out=out)


@dataclass(frozen=True)
class Affine:
    """x_1 W_1 + x_2 W_2 + ... + b: the weights of one layer that are combined before its ReLU."""

    weights: list[Tensor]
    bias: Tensor
    turned: list[Tensor]
    weight_gradients: list[Tensor]
    bias_gradient: Tensor

    @classmethod
    def of(cls, parameters: Parameters, weights: list[str], bias: str) -> Affine:
        found = [parameters.weight[name] for name in weights]
        gradients = [parameters.gradient[name] for name in weights]
        return cls(found, parameters.weight[bias], [w.t() for w in found], gradients, parameters.gradient[bias])

    def front(self, inputs: int, outputs: int) -> Affine:
        """For inputs of which only the first are nonzero, and outputs of which only these get a gradient."""
        return Affine(
            [weight[:inputs] for weight in self.weights],
            self.bias,
            [weight[:inputs, :outputs].t() for weight in self.weights],
            [gradient[:inputs, :outputs] for gradient in self.weight_gradients],
            self.bias_gradient[:outputs],
        )

    def forward(self, inputs: tuple[Rows, ...], out: Tensor) -> Tensor:
        """For inputs that are given directly, as in the first layer."""
        started = False
        for x, weight in zip(inputs, self.weights, strict=True):
            if isinstance(x, Tensor):
                torch.addmm(out if started else self.bias, x, weight, out=out)
            else:
                torch.add(x.matrix(weight), out if started else self.bias, out=out)
            started = True
        return out

    def backward(self, gradient: Tensor, inputs: tuple[Rows, ...]) -> None:
        """The gradients of weights and bias."""
        torch.sum(gradient, 0, out=self.bias_gradient)
        for x, weight_gradient in zip(inputs, self.weight_gradients, strict=True):
            multiply_transposed(x, gradient, weight_gradient)
