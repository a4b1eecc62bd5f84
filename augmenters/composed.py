"""The class behind a composed name."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Augmenter, Context, FeaturePolicy, GraphAugmenter, generator
from augmenters.kinds import FeatureAugmenter
from bench.registry import UserError


class Composed(GraphAugmenter):
    """Per-epoch augmenters applied one after the other, each with its own random stream."""

    when: ClassVar[Literal["offline", "epoch", "batch"]] = "epoch"

    def __init__(self, parts: Sequence[GraphAugmenter]) -> None:
        self.parts = list(parts)
        recomputing = [part for part in self.parts if part.features == "recompute"]
        changing = [part for part in self.parts if isinstance(part, FeatureAugmenter)]
        if recomputing and changing:
            first, second = (type(found[0]).__name__ for found in (recomputing, changing))
            raise UserError(
                f"{type(self).__name__}: {first} recomputes features, which would undo {second}; "
                f"set features=carry for {first}"
            )
        self.features: FeaturePolicy = "recompute" if recomputing else "carry"

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> list[Data]:
        """The new graphs: what a part draws depends on the output of the parts before it."""
        current = list(graphs)
        for part, seed in zip(self.parts, rng.integers(2**63, size=len(self.parts)).tolist(), strict=True):
            current = part(current, generator(seed), context)
        return current

    def apply(self, graphs: Sequence[Data], drawn: list[Data]) -> list[Data]:
        return [copy.copy(graph) for graph in drawn]


def compose(parts: Mapping[str, type[Augmenter]]) -> type[Composed]:
    """A class that applies these augmenters in this order, or an error that explains why they cannot be composed."""
    name = "+".join(parts)
    for part, cls in parts.items():
        if not issubclass(cls, GraphAugmenter) or cls.when != "epoch" or cls.mode != "replace":
            when = {"offline": "once before training", "batch": "inside the step"}.get(cls.when, f"by {cls.mode}")
            raise UserError(
                f"{name}: {part} works {when}, and only augmenters that replace graphs each epoch can be composed; "
                f"leave {part} out, or run it alone"
            )
    attributes = {
        "labels": "mixed" if any(cls.labels == "mixed" for cls in parts.values()) else "kept",
        "weighted": any(cls.weighted for cls in parts.values()),
        "__doc__": f"{', then '.join(cls.__name__ for cls in parts.values())}, each epoch.",
    }
    return type("+".join(cls.__name__ for cls in parts.values()), (Composed,), attributes)
