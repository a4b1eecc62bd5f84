"""The training loop over a network: loss after loss into one buffer, looked at now and then."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.mixing import Mixing
from bench.learning.fast.training.network import Network
from models.fit import diverged

LOOK_EVERY = 50  # epochs between two looks for a loss that is not a number


def train(parameters: Parameters, steps: Iterable[tuple[Network, Mixing | None]], epochs: int) -> Tensor:
    """One optimiser step for each element of `steps`; returns every loss, raises Diverged as the reference does."""
    losses = torch.zeros(epochs)
    for epoch, (slot, (network, mix)) in enumerate(zip(losses.unbind(0), steps, strict=True)):
        with torch.inference_mode():  # calls cost less than without gradients alone
            network.step(slot, mix)
            parameters.step()
        if (epoch + 1) % LOOK_EVERY == 0:
            look(losses, epoch + 1 - LOOK_EVERY, epoch + 1)
    look(losses, 0, epochs)
    return losses


def look(losses: Tensor, start: int, end: int) -> None:
    """Raise Diverged with the first epoch whose loss is not finite."""
    bad = (~losses[start:end].isfinite()).nonzero()
    if len(bad):
        epoch = start + int(bad[0])
        raise diverged(float(losses[epoch]), epoch)
