"""The request of an inspection, as one typed value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.datasets.paths import data_root


@dataclass(frozen=True)
class InspectRequest:
    """A dataset, methods, and the trials to inspect."""

    dataset: str
    augmenters: Sequence[str]
    k: int = 10
    fold: int = 0
    repeat: int = 0
    trials: int = 3
    workspace: Path = Path("runs")
    data: Path | None = None
    tracking_uri: str | None = None

    @property
    def data_root(self) -> Path:
        return data_root(self.data)
