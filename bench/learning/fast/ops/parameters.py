"""All weights of a classifier in one buffer, so that Adam is one call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from bench.learning.fast.ops.torch_private import fused_adam

ALIGN = 16  # floats in 64 bytes: products over aligned memory are bit-identical wherever a weight is stored


class Reordered(Protocol):
    places: list[tuple[str, int]]  # weights, and the axis of each

    def restore(self) -> None: ...

    def way_back(self) -> Tensor:
        """The permutation that restores the model's order of units."""


class Parameters:
    """Weights, gradients and Adam's moments of one model, each flat; `weight` and `gradient` are views by name.

    Matrices are stored as input x output, the transpose of torch's layout, so that sparse inputs can select rows.
    """

    def __init__(self, model: nn.Module, lr: float, weight_decay: float = 0.0) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        named = [(name, parameter.detach()) for name, parameter in model.named_parameters()]
        starts, end = [], 0
        for _, parameter in named:
            starts.append(end)
            end += math.ceil(parameter.numel() / ALIGN) * ALIGN
        self.state, self.flat_gradient = torch.zeros(3, end), torch.zeros(end)
        self.flat, self.mean, self.square = self.state
        self.steps, self.one = torch.zeros(()), torch.ones(())
        self.weight: dict[str, Tensor] = {}
        self.gradient: dict[str, Tensor] = {}
        self.with_moments: dict[str, Tensor] = {}  # each weight with its mean and mean square
        self.units: list[Reordered] = []  # units that are not in the model's order
        for start, (name, parameter) in zip(starts, named, strict=True):
            place, shape = slice(start, start + parameter.numel()), turned(parameter).shape
            self.weight[name] = self.flat[place].view(shape)
            self.gradient[name] = self.flat_gradient[place].view(shape)
            self.with_moments[name] = self.state[:, place].view(3, *shape)
            self.weight[name].copy_(turned(parameter))

    def step(self) -> None:
        """One step of Adam, as in torch.optim.Adam."""
        self.steps.add_(self.one)
        fused_adam(
            [self.flat],
            [self.flat_gradient],
            [self.mean],
            [self.square],
            [],
            [self.steps],
            lr=self.lr,
            beta1=0.9,
            beta2=0.999,
            weight_decay=self.weight_decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )

    def reorder(self, name: str, axis: int, order: Tensor) -> None:
        """Reorder rows or columns of a weight together with Adam's moments."""
        every = self.with_moments[name]
        every.copy_(every.index_select(axis if axis < 0 else axis + 1, order))

    def snapshot(self) -> dict[str, Tensor]:
        """Copies of the current weights, with units in the model's order."""
        found = {name: weight.clone() for name, weight in self.weight.items()}
        for units in self.units:
            order = units.way_back()
            for name, axis in units.places:
                found[name] = found[name].index_select(axis, order)
        return found

    def store(self, model: nn.Module, snapshot: Mapping[str, Tensor] | None = None) -> None:
        """Write weights back to the model: the current ones, or a snapshot."""
        for units in self.units:
            units.restore()
        weights = self.weight if snapshot is None else snapshot
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(turned(weights[name]))


def turned(weight: Tensor) -> Tensor:
    """Matrices transposed, everything else unchanged."""
    return weight.t() if weight.dim() == 2 else weight
