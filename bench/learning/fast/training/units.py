"""Hidden units that no training node uses: they stand last, and the products leave them out.

Their ReLU gives 0 for every node, and in a trained layer up to nine tenths are such. A sum without its zeros has the
same bits as long as the rest keeps its order, so no number changes. (With some 200 units or more, matrix products add
up in pieces, whose length depends on the number of units; then the last bits do change.)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bench.learning.fast.ops.parameters import Parameters

# Widths for which sums keep their bits: other ones take other paths through the matrix product, or through `sum`.
STEP, SUM_STEP, LEAST = 8, 32, 16
# Epochs of the looks for units that fell out of use; one that comes back is seen at once.
FIRST_LOOK, LOOK_EVERY = 10, 100


class Units:
    """The units of one layer: `width` of them, at the front, are looked at; the others give 0 for every node."""

    def __init__(self, parameters: Parameters, makers: Sequence[str], users: Sequence[str], step: int = STEP) -> None:
        """`makers`: weights and bias whose last axis they are; `users`: weights that read them, by rows."""
        self.parameters, self.step = parameters, step
        self.places = [(name, -1) for name in makers] + [(name, 0) for name in users]
        self.count = self.width = self.used = parameters.weight[makers[0]].shape[-1]
        self.order = torch.arange(self.count)
        self.epoch, self.sums = 0, torch.empty(self.count)
        self.sums_array = self.sums.numpy()
        parameters.units.append(self)

    def look_now(self) -> bool:
        """Begin an epoch: whether it is one of the looks."""
        self.epoch += 1
        return self.epoch == FIRST_LOOK or self.epoch % LOOK_EVERY == 0

    def settle(self, output: Tensor, look: bool) -> Tensor:
        """A ReLU's output with the units that it uses in front, and `width` to match."""
        if not look and self.used == self.count:
            return output
        torch.sum(output, 0, out=self.sums)  # nothing is negative, so the sums tell who is in use
        if not look and not any(self.sums_array[self.used :]):  # quicker than torch's for a few numbers
            return output
        used = self.sums != 0
        if not look:
            used[: self.used] = True  # a unit that comes and goes is moved once between two looks
        count = int(used.sum())
        self.width = min(self.count, max(LEAST, -(-count // self.step) * self.step))
        self.used = count if self.width < self.count else self.count
        self.parameters.flat_gradient.zero_()  # the next gradients are written over the front only
        # Those in use as they stood at first, for the sums' sake; all of them if nothing is won.
        place = self.order + self.count * ~used if self.width < self.count else self.order
        return self.move(torch.argsort(place), output)

    def restore(self) -> None:
        """Every unit where it stood at first."""
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
