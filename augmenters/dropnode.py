"""DropNode (You et al., 2020): removes a share p of the nodes and their edges, anew in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers, choose_within
from augmenters.kinds import KeptNodesAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class DropNode(KeptNodesAugmenter):
    """Removes exactly int(p n) nodes, but never the last one. Their rows leave `x`, so no readout counts them."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.25
    features: FeaturePolicy = "carry"

    def draw_kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The nodes that are kept, graph by graph."""
        dropped = (self.p * graphs.sizes).astype(np.int64)
        return choose_within(graphs.sizes, np.maximum(graphs.sizes - dropped, np.minimum(graphs.sizes, 1)), rng)
