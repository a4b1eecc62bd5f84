"""SoftEdge (Guo et al., 2022): gives a random share of the edges a weight from U(0, 1), anew in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from augmenters.functional import EdgeNumbers, choose_within
from augmenters.kinds import EdgeFactorAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class SoftEdge(EdgeFactorAugmenter):
    """One weight per undirected edge, the same in both directions; no edge is dropped."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    weighted: ClassVar[bool] = True

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The factor of each undirected edge."""
        factor = np.ones(edges.total, dtype=np.float32)
        chosen = choose_within(edges.counts, np.rint(self.p * edges.counts).astype(np.int64), rng)
        factor[chosen] = rng.random(len(chosen), dtype=np.float32)
        return factor
