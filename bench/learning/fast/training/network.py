"""One handwritten training step of a graph classifier: backbone, readout, head, loss and all gradients."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from bench.learning.fast.ops.dense import Linear, through_relu
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.pooling import Pooling
from bench.learning.fast.ops.torch_private import log_softmax_backward
from bench.learning.fast.training.mixing import Mixing
from models.classifier import Ending


class Stack(Protocol):
    def forward(self) -> Tensor: ...

    def backward(self, gradient: Tensor) -> None: ...


class Network:
    """A classifier bound to one training set; weights and gradients are stored in `parameters`."""

    def __init__(
        self,
        parameters: Parameters,
        stack: Stack,
        pooling: Pooling,
        targets: Tensor,
        weights: Tensor,
        ending: Ending = "linear",
    ) -> None:
        self.stack, self.pooling, self.rectified = stack, pooling, ending == "relu"
        self.whole = self.first = Linear(parameters, "head.0")
        self.second = Linear(parameters, "head.2")
        (width, hidden), (graphs, classes) = self.first.weight.shape, targets.shape
        self.targets, self.weights = targets, weights.view(-1, 1)
        self.hidden, self.hidden_gradient = torch.empty(2, graphs, hidden)
        self.pooled_gradient = torch.empty(graphs, width)
        self.logits = torch.empty(graphs, classes)
        self.set_targets(targets)

    def set_targets(self, targets: Tensor) -> None:
        """Loss = sum(negative * log p); the same for all steps unless targets are mixed."""
        self.negative = -(self.weights * targets).to(torch.get_default_dtype())
        self.negative_row = self.negative.view(-1)

    def forward(self) -> Tensor:
        """Logits of every graph."""
        return self.head(self.pooled())

    def pooled(self) -> Tensor:
        """One row per graph; the head skips the units that the stack leaves out."""
        rows = self.pooling.forward(self.stack.forward())
        if rows.shape != self.pooled_gradient.shape:
            self.first, self.pooled_gradient = self.whole.front(rows.shape[1]), torch.empty_like(rows)
        return rows

    def head(self, pooled: Tensor) -> Tensor:
        self.first.forward(pooled, self.hidden).relu_()
        logits = self.second.forward(self.hidden, self.logits)
        return logits.relu_() if self.rectified else logits

    def step(self, loss: Tensor, mix: Mixing | None = None) -> None:
        """Write the loss to the scalar `loss`, and its gradients to the parameters."""
        pooled = self.pooled()
        if mix is None:
            gradient = self.head_step(pooled, loss)
        else:
            mixed, targets = mix.forward(pooled, self.targets)
            self.set_targets(targets)
            gradient = mix.backward(self.head_step(mixed, loss))
        self.stack.backward(self.pooling.backward(gradient))

    def head_step(self, pooled: Tensor, loss: Tensor) -> Tensor:
        """The loss and gradients of the head; returns the gradient of the pooled rows."""
        log_share = torch.log_softmax(self.head(pooled), 1)
        torch.dot(self.negative_row, log_share.view(-1), out=loss)
        gradient = log_softmax_backward(self.negative, log_share, 1, log_share.dtype)
        if self.rectified:  # a logit of 0 has no gradient
            gradient = through_relu(gradient, self.logits)
        self.second.backward(gradient, self.hidden, self.hidden_gradient)
        self.first.backward(through_relu(self.hidden_gradient, self.hidden), pooled, self.pooled_gradient)
        return self.pooled_gradient
