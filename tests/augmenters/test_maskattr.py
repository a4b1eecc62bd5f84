"""MaskAttr: the mean of the graph's own features, in an exact number of rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hand_graphs import path

from augmenters import MaskAttr
from augmenters.kinds import FeatureAugmenter, kind_of


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 1.0])
def test_masked_rows_have_the_mean_of_their_own_graph(p: float) -> None:
    graphs = [path(10), path(4)]
    graphs[1].x += 100
    for made, original, mean in zip(MaskAttr(p=p)(graphs, np.random.default_rng(0)), graphs, (4.5, 101.5), strict=True):
        masked = (made.x == mean).view(-1)
        assert int(masked.sum()) == round(p * original.num_nodes)
        assert torch.equal(made.x[~masked], original.x[~masked])
        assert torch.equal(made.edge_index, original.edge_index)


def test_constant_features_stay() -> None:
    one = path(5)
    one.x = torch.ones(5, 3)
    assert torch.equal(MaskAttr(p=0.5)([one], np.random.default_rng(0))[0].x, one.x)


def test_it_has_the_fast_path() -> None:
    assert kind_of(MaskAttr) is FeatureAugmenter and MaskAttr().p == 0.2
