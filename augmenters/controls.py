"""The baseline and the control that only repeats: what a method must beat to have done anything."""

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
    """The labeled graphs as they are."""

    when: ClassVar[Literal["offline"]] = "offline"
    identity: ClassVar[Mapping[str, Scalar]] = {}  # whatever its settings

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> None:
        return None

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        return [graph.clone() for graph in graphs]


@dataclass(frozen=True)
class Duplicate(Unchanged):
    """The originals once more, as many as GDM generates: the same loss weight without a new graph."""

    mode: ClassVar[Literal["append"]] = "append"
    weight: Annotated[float, Within(0)] = 1.0

    def apply(self, graphs: Sequence[Data], drawn: Any) -> list[Data]:
        """3 ceil(N / 3) graphs, the originals over and over."""
        return [graphs[i % len(graphs)].clone() for i in range(3 * math.ceil(len(graphs) / 3))]
