"""Drop edges between well-connected nodes more often than others, other ones each epoch."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from augmenters import EdgeFactorAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class BusyEdges(EdgeFactorAugmenter):
    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25

    def draw_factors(self, edges, rng):
        degree = np.bincount(edges.ends.ravel(), minlength=edges.nodes)
        busy = degree[edges.ends].min(axis=0)
        return rng.random(edges.total) >= self.p * busy / max(busy.max(initial=1), 1)
