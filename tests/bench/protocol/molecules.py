"""Generated data in the shape of OGB's molecule sets, and plug-ins of a third party that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from bench.datasets.base import Dataset, DatasetInfo, GraphSet
from bench.datasets.split_files import Parts
from bench.protocol.metrics import Classes, Metric, Probabilities
from bench.protocol.splitters import Splitter

COUNT = 60


def molecules(count: int = COUNT) -> list[Data]:
    """Rings and chains with columns of whole numbers, a rare class as y of shape [1, 1]; sorted by scaffold."""
    rng = np.random.default_rng(0)
    graphs = []
    for number in range(count):
        nodes, active = int(rng.integers(5, 9)), number % 4 == 0
        ends = np.arange(nodes if active else nodes - 1)
        edges = np.stack([ends, (ends + 1) % nodes])
        features = np.stack([rng.integers(0, 119, nodes), rng.integers(0, 4, nodes), np.full(nodes, 2 + active)], 1)
        graphs.append(
            Data(
                x=torch.from_numpy(features),
                edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
                y=torch.tensor([[float(active)]]),
                scaffold=number // 6,
            )
        )
    return graphs


class Molecules(Dataset):
    """A dataset with a split and a metric of its own."""

    def info(self, root: Path) -> DatasetInfo:
        return DatasetInfo("molecules", True, True, COUNT, 2, False, metric="roc_auc", splits="given")

    def load(self, root: Path) -> Sequence[Data]:
        return molecules()

    def folds(self, root: Path) -> Sequence[Sequence[Sequence[int]]]:
        return [(range(36), range(36, 48), range(48, 60))]


class Halves(Splitter):
    """Two folds: each half is tested once."""

    def folds(self, data: GraphSet, root: Path) -> Sequence[Parts]:
        every = np.arange(len(data.graphs))
        low, high = every[::2], every[1::2]
        return [(low[4:], low[:4], high), (high[4:], high[:4], low)]


class Hits(Metric):
    """A third party's: the mean probability of the true class."""

    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        return float(probabilities[np.arange(len(truth)), truth].mean())


class Broken(Metric):
    def __call__(self, truth: Classes, probabilities: Probabilities) -> float:
        return 7.0


class Overlapping(Splitter):
    def folds(self, data: GraphSet, root: Path) -> Sequence[Parts]:
        return [([0, 1, 2], [2, 3], [4])]
