"""Gaussian noise on node features, anew in each epoch (training with noise: Bishop, Neural Computation 1995)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.random import Generator

from augmenters.functional import EdgeNumbers
from augmenters.kinds import FeatureAugmenter
from bench.registry import Scalar, Tune, Within


@dataclass(frozen=True)
class FeatureNoise(FeatureAugmenter):
    """x + std z with z ~ N(0, 1), drawn for each feature of each node."""

    std: Annotated[float, Within(0, 1000), Tune(0.01, 1.0, log=True)] = 0.1
    identity: ClassVar[Mapping[str, Scalar]] = {"std": 0.0}

    def draw_features(self, x: np.ndarray, graphs: EdgeNumbers, rng: Generator) -> np.ndarray:
        """The features with noise added."""
        return x + self.std * rng.standard_normal(x.shape, dtype=np.float32)
