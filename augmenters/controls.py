"""The baseline, and a control that only repeats graphs: what a method has to beat to show an effect."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, GraphAugmenter
from bench.registry import Scalar, Within


@dataclass(frozen=True)
class Unchanged(GraphAugmenter):
    """The labeled graphs, unchanged."""

    when: ClassVar[Literal["offline"]] = "offline"
    identity: ClassVar[Mapping[str, Scalar]] = {}  # at any settings

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> None:
        return None

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        return [graph.clone() for graph in graphs]


@dataclass(frozen=True)
class Duplicate(Unchanged):
    """The originals again, as many as GDM generates: the same loss weight without new graphs."""

    mode: ClassVar[Literal["append"]] = "append"
    weight: Annotated[float, Within(0)] = 1.0

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        """3 ceil(N / 3) graphs: the originals, repeated in order."""
        return [graphs[i % len(graphs)].clone() for i in range(3 * math.ceil(len(graphs) / 3))]
