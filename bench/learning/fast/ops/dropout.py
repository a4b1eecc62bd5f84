"""Dropout after each layer's ReLU, with the same masks as the reference for the same seed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from models.fit import own_stream

MANTISSA = 53  # bits of a random number in double precision


class Dropout:
    """The source of the masks of one training.

    Torch draws them number by number, which would take most of the training time. Numpy has the same generator and
    takes a third of the time. It can be used if nothing else draws from torch's generator (`alone`) and torch uses this
    algorithm (on Intel processors it may use another).
    """

    def __init__(self, p: float, seed: int, alone: bool) -> None:
        self.kept = 1 - p
        self.factor = torch.ones(1).div_(self.kept).numpy()[0]
        self.twister = mersenne_twister(seed) if alone and same_draws_as_torch() else None
        self.untouched = torch.get_rng_state() if self.twister is not None else None
        self.nodes: Tensor | None = None  # the nodes present in this epoch, ascending; None: all

    def draw(self, factors: Tensor) -> None:
        """Zero with probability p, else 1 / (1 - p), for the same rows as in the reference."""
        if self.nodes is None:
            self.fill(factors)
        else:
            rows = torch.empty(len(self.nodes), factors.shape[1])
            self.fill(rows)
            factors.index_copy_(0, self.nodes, rows)

    def disturbed(self) -> bool:
        """Whether something unexpectedly drew from torch's generator."""
        return self.untouched is not None and not torch.equal(self.untouched, torch.get_rng_state())

    def fill(self, factors: Tensor) -> None:
        if self.twister is None:
            factors.bernoulli_(self.kept).div_(self.kept)
        else:
            kept = smaller_than(self.kept, self.twister, factors.numel()).reshape(factors.shape)
            np.multiply(kept, self.factor, out=factors.numpy())


class Mask:
    """The dropout of one layer, in place."""

    def __init__(self, dropout: Dropout, rows: int, width: int) -> None:
        self.dropout, self.factors = dropout, torch.zeros(rows, width)

    def forward(self, rows: Tensor) -> Tensor:
        self.dropout.draw(self.factors)
        return rows.mul_(self.factors)

    def backward(self, gradient: Tensor) -> Tensor:
        return gradient.mul_(self.factors)


def mersenne_twister(seed: int) -> np.random.RandomState:
    """The stream of `torch.manual_seed(seed)`, which the generator reads in units of 32 bits."""
    return np.random.RandomState(seed & 0xFFFFFFFF)


def smaller_than(p: float, twister: np.random.RandomState, count: int) -> np.ndarray:
    """Torch's `bernoulli_(p)`: whether the low bits of each 64-bit word, as a number below 1, are below p."""
    words = twister.randint(0, 2**64, count, dtype=np.uint64)
    words &= np.uint64(2**MANTISSA - 1)
    return words < np.uint64(np.ceil(p * 2**MANTISSA))


@lru_cache(maxsize=1)
def same_draws_as_torch() -> bool:
    """Whether torch's draws on this machine match those of this generator."""
    seed, p, count = 2**35 + 7, 0.3, 1000
    with own_stream(seed):
        drawn = torch.empty(count).bernoulli_(p)
    return bool((drawn.numpy() == smaller_than(p, mersenne_twister(seed), count)).all())
