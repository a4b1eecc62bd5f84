"""FLAG on a view that only writes down what it is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hand_graphs import context, path
from torch_geometric.data import Data

from augmenters import FLAG


class Slope:
    """A loss that rises by 2 with every feature of even nodes, and falls by 3 with those of odd ones."""

    num_classes = 2

    def __init__(self) -> None:
        self.seen: list[tuple[list[torch.Tensor], float]] = []

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[torch.Tensor]:
        self.seen.append(([graph.x for graph in graphs], share))
        even = [(torch.arange(graph.num_nodes) % 2 == 0).view(-1, 1) for graph in graphs]
        return [torch.where(one, 2.0, -3.0).expand_as(graph.x) for one, graph in zip(even, graphs, strict=True)]


@pytest.mark.parametrize("ascents", [1, 3])
def test_it_climbs_by_signs_from_a_random_start_and_learns_each_time(ascents: int) -> None:
    graphs, view, augmenter = [path(3), path(2)], Slope(), FLAG(size=0.1, ascents=ascents)
    drawn = augmenter.draw(graphs, np.random.default_rng(0), context())
    augmenter.step(view, graphs, drawn)  # type: ignore[arg-type]
    assert len(view.seen) == ascents and all(share == 1 / ascents for _, share in view.seen)
    for number, (features, _) in enumerate(view.seen):
        for x, graph, start in zip(features, graphs, drawn, strict=True):
            signs = torch.where(torch.arange(graph.num_nodes) % 2 == 0, 1.0, -1.0).view(-1, 1)
            assert torch.allclose(x, graph.x + start + number * 0.1 * signs)
            assert float(start.abs().max()) <= 0.1
    assert graphs[0].x.view(-1).tolist() == [0, 1, 2]
