"""Attribute masking (You et al., GraphCL, NeurIPS 2020): replaces the features of some nodes with the graph's mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.random import Generator

from augmenters.functional import EdgeNumbers, choose_within
from augmenters.kinds import FeatureAugmenter
from bench.registry import Tune, Within


@dataclass(frozen=True)
class MaskAttr(FeatureAugmenter):
    """A random share p of the nodes get the mean feature of their graph; constant features do not change."""

    p: Annotated[float, Within(0, 1), Tune(0.05, 0.5)] = 0.2

    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The features with some rows masked."""
        masked = choose_within(graphs.sizes, np.rint(self.p * graphs.sizes).astype(np.int64), rng)
        means = np.add.reduceat(x, graphs.starts, axis=0) / graphs.sizes[:, None]
        new = x.copy()
        new[masked] = means[graphs.graph_of_node[masked]]
        return new
