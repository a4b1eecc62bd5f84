"""Moves hidden units that no training node uses to the end, where products skip them.

Their ReLU is 0 for every node, which applies to up to nine tenths of the units of a trained layer. Omitting zeros from
a sum does not change its bits as long as the order of the rest is kept, so results are unchanged. (With about 200 units
or more, matrix products are summed in blocks whose size depends on the number of units; then the last bits do change.)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.learning.fast.ops.parameters import Parameters

# Widths for which sums are bit-identical: others use different code paths in the matrix product or in `sum`.
STEP, SUM_STEP, LEAST = 8, 32, 16
# Epochs of checks for units that are no longer used; one that is used again is noticed at once.
FIRST_LOOK, LOOK_EVERY = 10, 100


class Units:
    """The units of one layer: `width` of them, at the front, are computed; the others are 0 for every node."""

    def __init__(self, parameters: Parameters, makers: Sequence[str], users: Sequence[str], step: int = STEP) -> None:
        """`makers`: weights and bias whose last axis are these units; `users`: weights whose rows are these units."""
        self.parameters, self.step = parameters, step
        self.places = [(name, -1) for name in makers] + [(name, 0) for name in users]
        self.count = self.width = self.used = parameters.weight[makers[0]].shape[-1]
        self.order = torch.arange(self.count)
        self.epoch, self.sums = 0, torch.empty(self.count)
        self.sums_array = self.sums.numpy()
        parameters.units.append(self)

    def look_now(self) -> bool:
        """Start an epoch; returns whether units are checked in it."""
        self.epoch += 1
        return self.epoch == FIRST_LOOK or self.epoch % LOOK_EVERY == 0

    def settle(self, output: Tensor, look: bool) -> Tensor:
        """The output of a ReLU with the used units in front, and a matching `width`."""
        if not look and self.used == self.count:
            return output
        torch.sum(output, 0, out=self.sums)  # nothing is negative, so the sums show which units are used
        if not look and not any(self.sums_array[self.used :]):  # faster than torch for a few numbers
            return output
        used = self.sums != 0
        if not look:
            used[: self.used] = True  # a unit that is used intermittently is moved once between two checks
        count = int(used.sum())
        self.width = min(self.count, max(LEAST, -(-count // self.step) * self.step))
        self.used = count if self.width < self.count else self.count
        self.parameters.flat_gradient.zero_()  # later gradients are written only to the front
        # Used units keep their original order, so that sums are bit-identical; all of them if nothing is saved.
        place = self.order + self.count * ~used if self.width < self.count else self.order
        return self.move(torch.argsort(place), output)

    def restore(self) -> None:
        """Restore the original order of units."""
        self.move(self.way_back(), self.order.unsqueeze(0))

    def way_back(self) -> Tensor:
        return torch.argsort(self.order)

    def move(self, turn: Tensor, output: Tensor) -> Tensor:
        if bool((turn == torch.arange(self.count)).all()):
            return output
        self.order = self.order[turn]
        for name, axis in self.places:
            self.parameters.reorder(name, axis, turn)
        return output.index_select(1, turn)
