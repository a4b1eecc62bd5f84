"""M-Mixup (Wang et al., 2021): graph embeddings and labels mixed between the readout and the head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, EmbeddingAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class MMixup(EmbeddingAugmenter):
    """h = lambda h_i + (1 - lambda) h_j with j a permutation of the batch and one lambda ~ Beta(alpha, beta) a step."""

    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 4.0, log=True)] = 1.0
    beta: Annotated[float, Within(0, 100, above=True)] = 1.0
    labels = "mixed"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> tuple[float, np.ndarray]:
        return float(rng.beta(self.alpha, self.beta)), rng.permutation(len(graphs))

    def mix(self, embeddings: Tensor, targets: Tensor, drawn: tuple[float, np.ndarray]) -> tuple[Tensor, Tensor]:
        share, partner = drawn[0], torch.as_tensor(drawn[1], device=embeddings.device)
        return (
            share * embeddings + (1 - share) * embeddings[partner],
            share * targets + (1 - share) * targets[partner],
        )
