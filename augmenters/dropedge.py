"""DropEdge (Rong et al., 2020): drops each undirected edge with probability p, anew in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers
from augmenters.kinds import EdgeFactorAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class DropEdge(EdgeFactorAugmenter):
    """Drops undirected edges (both directions together), always starting from the original graph."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    features: FeaturePolicy = "carry"

    def draw_factors(self, edges: EdgeNumbers, rng: Generator) -> np.ndarray:
        """Which undirected edges are kept."""
        return rng.random(edges.total) >= self.p
