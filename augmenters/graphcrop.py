"""GraphCrop (Wang et al., 2020, arXiv:2009.10564): keeps the part of a graph around a random node, in each epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.base import FeaturePolicy
from augmenters.functional import EdgeNumbers, first_in_each_graph, kept_sizes, one_per_graph
from augmenters.kinds import KeptNodesAugmenter
from augmenters.pagerank import order_from_roots
from bench.registry import Tune, Within


@dataclass(frozen=True)
class GraphCrop(KeptNodesAugmenter):
    """Removes the int(p n) nodes that personalized PageRank from a random root ranks lowest, but never the last one."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.3
    features: FeaturePolicy = "carry"

    def draw_kept(self, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The nodes that are kept, graph by graph."""
        order = order_from_roots(graphs, one_per_graph(graphs.sizes, rng), rng)
        return first_in_each_graph(graphs, order, kept_sizes(graphs.sizes, self.p))
