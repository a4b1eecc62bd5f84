"""The test part of a fold. All trials of a fold use the same graphs, so prepared forms of them are cached."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, overload

import numpy as np
from torch_geometric.data import Data

from bench.learning.isolation import unlabeled
from bench.learning.learner import predictions
from bench.learning.problem import Predictor

MOST_BYTES = 256 * 2**20  # of all forms that a process keeps
MOST_PARTS = 32  # folds of some datasets with some features


class Form(Protocol):
    """Graphs in a form prepared for a predictor; trials must not modify it."""

    @property
    def nbytes(self) -> int: ...


F = TypeVar("F", bound=Form)


@dataclass
class Unlabeled:
    """Graphs without their labels, created on access, and the forms that predictors have prepared from them."""

    make: Callable[[int], Data]
    count: int
    forms: dict[tuple[type, Hashable], Form] = field(default_factory=dict)

    def graphs(self, places: Iterable[int] | None = None) -> list[Data]:
        """Some of the graphs, or all."""
        return [unlabeled(self.make(place)) for place in (range(self.count) if places is None else places)]

    def form(self, predictor: FormPredictor, key: Hashable, make: Callable[[Sequence[Data]], F]) -> F:
        """The result of `make` for the graphs, cached per class of predictor and key.

        The key must name everything that the form depends on besides the graphs. Different classes may use the same
        key: each gets its own form.
        """
        place = type(predictor), key
        if place not in self.forms:
            self.forms[place] = make(self.graphs())
        found: F = self.forms[place]  # type: ignore[assignment]
        return found

    @property
    def nbytes(self) -> int:
        return sum(form.nbytes for form in self.forms.values())


class HeldOut(Sequence[Data]):
    """The labeled test graphs of a fold; a predictor gets `unlabeled`."""

    def __init__(self, make: Callable[[int], Data], truth: np.ndarray) -> None:
        """`make` returns the graph at an index."""
        self.make, self.truth = make, truth
        self.unlabeled = Unlabeled(make, len(truth))

    def __len__(self) -> int:
        return len(self.truth)

    @overload
    def __getitem__(self, place: int) -> Data: ...

    @overload
    def __getitem__(self, place: slice) -> list[Data]: ...

    def __getitem__(self, place: int | slice) -> Data | list[Data]:
        chosen = range(len(self))[place]
        return self.make(chosen) if isinstance(chosen, int) else [self.make(one) for one in chosen]


class FormPredictor(ABC):
    """Base class of predictors that can process a test part as a whole rather than graph by graph."""

    @abstractmethod
    def classes(self, graphs: Unlabeled) -> np.ndarray | None:
        """The class of each graph, consistent with `probabilities`; None if these graphs are not supported."""


class HeldOutParts:
    """The most recently used test parts, up to a limit."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_parts: int = MOST_PARTS) -> None:
        self.most_bytes, self.most_parts = most_bytes, most_parts
        self.parts: OrderedDict[Hashable, HeldOut] = OrderedDict()

    def fetch(self, key: Hashable, make: Callable[[], HeldOut]) -> HeldOut:
        """The part under a key; the least recently used ones are dropped if there are too many."""
        if key not in self.parts:
            self.parts[key] = make()
        self.parts.move_to_end(key)
        while len(self.parts) > 1 and (len(self.parts) > self.most_parts or self.nbytes > self.most_bytes):
            self.parts.popitem(last=False)
        return self.parts[key]

    @property
    def nbytes(self) -> int:
        return sum(part.unlabeled.nbytes for part in self.parts.values())


def predicted_classes(predictor: Predictor, graphs: Sequence[Data], num_classes: int) -> np.ndarray:
    """The predicted class of each test graph; the predictor never sees a label."""
    if isinstance(graphs, HeldOut) and isinstance(predictor, FormPredictor):
        guess = predictor.classes(graphs.unlabeled)
        if guess is not None:
            return guess
    classes: np.ndarray = predictions(predictor, graphs, num_classes).argmax(dim=1).numpy()
    return classes
