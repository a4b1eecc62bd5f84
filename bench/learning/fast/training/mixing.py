"""Mixing of graph embeddings inside the step, and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, Context, EmbeddingAugmenter
from augmenters.kinds import PairMixAugmenter, column, kind_of
from bench.learning.fast.not_fast import NotFast
from bench.learning.reference import bound_mix
from models.fit import Mix


class Mixing(Protocol):
    """The mix of one step: `forward` computes new embeddings and targets, `backward` the gradient of the old
    embeddings.
    """

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]: ...

    def backward(self, gradient: Tensor) -> Tensor: ...


class PairMixing:
    """share h_i + (1 - share) h_partner(i), where the partners are a permutation and all rows have the same share."""

    def __init__(self, share: float, partner: np.ndarray, came_from: np.ndarray) -> None:
        self.share, self.partner, self.came_from = share, torch.from_numpy(partner), torch.from_numpy(came_from)

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return self.mixed(embeddings, self.partner), self.mixed(targets, self.partner)

    def backward(self, gradient: Tensor) -> Tensor:
        return self.mixed(gradient, self.came_from)

    def mixed(self, rows: Tensor, other: Tensor) -> Tensor:
        return torch.add(rows * self.share, rows.index_select(0, other), alpha=1 - self.share)


class AnyPairMixing:
    """The same with arbitrary partners and, optionally, one share per row."""

    def __init__(self, share: float | np.ndarray, partner: np.ndarray) -> None:
        self.share, self.partner = share, torch.from_numpy(partner)

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        share, partner = column(self.share, embeddings), self.partner
        return (
            embeddings * share + embeddings.index_select(0, partner) * (1 - share),
            targets * share + targets.index_select(0, partner) * (1 - share),
        )

    def backward(self, gradient: Tensor) -> Tensor:
        share = column(self.share, gradient)
        return (gradient * share).index_add_(0, self.partner, gradient * (1 - share))


def pair_mixing(share: float | np.ndarray, partner: np.ndarray) -> Mixing:
    """The faster applicable one of the two."""
    if np.ndim(share) == 0:
        came_from = partner.argsort()
        if (partner[came_from] == np.arange(len(partner))).all():  # the partners are a permutation
            return PairMixing(float(share), partner, came_from)
    return AnyPairMixing(share, partner)


class TracedMixing:
    """An arbitrary mix, differentiated by torch."""

    def __init__(self, mix: Mix) -> None:
        self.mix = mix
        self.given = self.mixed = torch.empty(0)

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode(mode=False):  # which enables gradients
            self.given = embeddings.clone().requires_grad_()
            self.mixed, targets = self.mix(self.given, targets)
        if targets.requires_grad:
            raise NotFast("mixed labels that depend on the embeddings")
        return self.mixed.detach(), targets

    def backward(self, gradient: Tensor) -> Tensor:
        with torch.inference_mode(mode=False):
            return torch.autograd.grad(self.mixed, self.given, gradient)[0]


def mixes_pairs(augmenter: Augmenter) -> TypeGuard[PairMixAugmenter]:
    """Whether the mix is known to be linear, row by row."""
    return kind_of(type(augmenter)) is PairMixAugmenter


def draw_mixing(augmenter: EmbeddingAugmenter, graphs: Sequence[Data], rng: Generator, context: Context) -> Mixing:
    """The mix of the next step, drawn as in the reference."""
    if mixes_pairs(augmenter):
        return pair_mixing(*augmenter.draw(graphs, rng, context))
    return TracedMixing(bound_mix(augmenter, graphs, rng, context))
