"""M-Mixup (Wang et al., 2021): mixes graph embeddings and labels between the readout and the head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.kinds import PairMixAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class MMixup(PairMixAugmenter):
    """h = lambda h_i + (1 - lambda) h_j, with j from a permutation of the batch and one lambda ~ Beta(alpha, beta) per
    step.
    """

    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 4.0, log=True)] = 1.0
    beta: Annotated[float, Within(0, 100, above=True)] = 1.0

    def draw_pairs(self, count: int, rng: Generator) -> tuple[float, np.ndarray]:
        return float(rng.beta(self.alpha, self.beta)), rng.permutation(count)
