"""FeatureNoise: the spread that was asked for, around the original."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import path

from augmenters import FeatureNoise
from augmenters.kinds import FeatureAugmenter, kind_of


@pytest.mark.parametrize("std", [0.1, 2.0])
def test_noise_has_mean_zero_and_its_standard_deviation(std: float) -> None:
    one = path(50)
    one.x = torch.full((50, 40), 3.0)
    (made,) = FeatureNoise(std=std)([one], np.random.default_rng(0))
    assert made.x.dtype == torch.float32 and torch.equal(one.x, torch.full((50, 40), 3.0))
    assert float((made.x - 3).mean()) == pytest.approx(0, abs=0.1 * std)
    assert float((made.x - 3).std()) == pytest.approx(std, rel=0.1)


def test_no_noise_at_zero_and_fresh_noise_each_time() -> None:
    one, rng = path(5), np.random.default_rng(0)
    assert torch.equal(FeatureNoise(std=0.0)([one], rng)[0].x, one.x)
    first, second = (FeatureNoise()([one], rng)[0].x for _ in range(2))
    assert not torch.equal(first, second)


def test_it_has_the_fast_path() -> None:
    assert kind_of(FeatureNoise) is FeatureAugmenter
