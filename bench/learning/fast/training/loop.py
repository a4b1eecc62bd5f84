"""The training loop over a network: losses are written to one buffer, which is checked from time to time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.mixing import Mixing
from bench.learning.fast.training.network import Network
from models.fit import diverged

TrainingStep = tuple[Network, Mixing | None]  # with the mix of its embeddings, if there is one
LOOK_EVERY = 50  # epochs between checks for non-finite losses


def train(
    parameters: Parameters,
    steps: Iterable[Sequence[TrainingStep]],
    epochs: int,
    after_epoch: Callable[[], None] | None = None,
) -> Tensor:
    """The optimizer steps of each epoch; returns the loss of every epoch, raises Diverged as the reference does."""
    losses, more = torch.zeros(epochs), torch.zeros(())
    for epoch, (slot, (first, *rest)) in enumerate(zip(losses.unbind(0), steps, strict=True)):
        with torch.inference_mode():  # calls are cheaper than with no_grad
            first[0].step(slot, first[1])
            parameters.step()
            for network, mix in rest:
                network.step(more, mix)
                parameters.step()
                slot.add_(more)
            if after_epoch is not None:
                look(losses, epoch, epoch + 1)
                after_epoch()
        if (epoch + 1) % LOOK_EVERY == 0:
            look(losses, epoch + 1 - LOOK_EVERY, epoch + 1)
    look(losses, 0, epochs)
    return losses


def look(losses: Tensor, start: int, end: int) -> None:
    """Raise Diverged for the first epoch with a non-finite loss."""
    bad = (~losses[start:end].isfinite()).nonzero()
    if len(bad):
        epoch = start + int(bad[0])
        raise diverged(float(losses[epoch]), epoch)
