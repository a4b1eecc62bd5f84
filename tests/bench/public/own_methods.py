"""Augmenters of somebody's own, as a module that tests import by its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from augmenters import Unchanged

SHIFT = 1.0


@dataclass(frozen=True)
class Shifted(Unchanged):
    by: float = 0.5
    identity: ClassVar = {"by": 0.0}

    def apply(self, graphs: Any, drawn: Any) -> Any:
        changed = [graph.clone() for graph in super().apply(graphs, drawn)]
        for graph in changed:
            graph.x = graph.x + self.by * SHIFT
        return changed


@dataclass(frozen=True)
class Listed(Unchanged):
    """What it is made with cannot be written as text."""

    values: list[float] = field(default_factory=list)


class Forgetful(Unchanged):
    def __init__(self, p: float = 0.1) -> None:
        pass


class NoAugmenter:
    pass


def nested() -> type:
    class Inside(Unchanged):
        pass

    return Inside
