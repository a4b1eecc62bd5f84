"""scikit-learn's handwritten digits as graphs: real data that needs no download."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt

from bench.datasets.base import Dataset, DatasetInfo
from bench.registry import Within

if TYPE_CHECKING:
    from torch_geometric.data import Data

_SIDE, _BRIGHTEST = 8, 16


class Digits(Dataset):
    """One node per lit pixel of an 8 x 8 image, connected to the lit ones among its 8 neighbors.

    Features: brightness and position, each from 0 to 1. A pixel is lit if its gray level (0 to 16) is at least
    `threshold`.
    """

    def __init__(self, threshold: Annotated[int, Within(1, 10)] = 4) -> None:
        self.threshold = threshold

    def info(self, root: Path) -> DatasetInfo:
        return DatasetInfo("digits", True, True, 1797, 10, weighted=False)

    def load(self, root: Path) -> Sequence[Data]:
        from sklearn.datasets import load_digits

        digits = load_digits()
        return [self._graph(image, int(label)) for image, label in zip(digits.images, digits.target, strict=True)]

    def _graph(self, image: npt.NDArray[np.float64], label: int) -> Data:
        import torch
        from torch_geometric.data import Data

        rows, columns = np.nonzero(image >= self.threshold)
        steps = np.maximum(np.abs(rows[:, None] - rows), np.abs(columns[:, None] - columns))
        features = np.stack([image[rows, columns] / _BRIGHTEST, columns / (_SIDE - 1), rows / (_SIDE - 1)], axis=1)
        return Data(
            x=torch.tensor(features, dtype=torch.float32),
            edge_index=torch.tensor(np.stack(np.nonzero(steps == 1)), dtype=torch.long),
            y=torch.tensor([label]),
        )
