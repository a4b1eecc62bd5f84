"""Mixes of graph embeddings inside the step, with the gradient that goes back through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, EmbeddingAugmenter
from augmenters.m_mixup import MMixup
from bench.learning.fast.graphs.joined import NotFast
from bench.learning.reference import bound_mix
from models.fit import Mix


class Mixing(Protocol):
    """One step's mix: `forward` gives new embeddings and targets, `backward` the gradient of the old embeddings."""

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]: ...

    def backward(self, gradient: Tensor) -> Tensor: ...


class PairMixing:
    """M-Mixup's: share h_i + (1 - share) h_partner(i)."""

    def __init__(self, share: float, partner: np.ndarray) -> None:
        self.share, self.partner = share, torch.from_numpy(partner)
        self.came_from = torch.from_numpy(np.argsort(partner))

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return self.mixed(embeddings, self.partner), self.mixed(targets, self.partner)

    def backward(self, gradient: Tensor) -> Tensor:
        return self.mixed(gradient, self.came_from)

    def mixed(self, rows: Tensor, other: Tensor) -> Tensor:
        return torch.add(rows * self.share, rows.index_select(0, other), alpha=1 - self.share)


class TracedMixing:
    """Anybody's mix, differentiated by torch."""

    def __init__(self, mix: Mix) -> None:
        self.mix = mix
        self.given = self.mixed = torch.empty(0)

    def forward(self, embeddings: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode(mode=False):  # which turns gradients on
            self.given = embeddings.clone().requires_grad_()
            self.mixed, targets = self.mix(self.given, targets)
        if targets.requires_grad:
            raise NotFast("mixed labels that depend on the embeddings")
        return self.mixed.detach(), targets

    def backward(self, gradient: Tensor) -> Tensor:
        with torch.inference_mode(mode=False):
            return torch.autograd.grad(self.mixed, self.given, gradient)[0]


def draw_mixing(augmenter: EmbeddingAugmenter, graphs: Sequence[Data], rng: Generator, context: Context) -> Mixing:
    """The mix of the next step, drawn as the reference draws it."""
    if type(augmenter) is MMixup:
        return PairMixing(*augmenter.draw(graphs, rng, context))
    return TracedMixing(bound_mix(augmenter, graphs, rng, context))
