"""The test part of a fold: all its trials look at the same graphs, so what can be prepared is prepared once."""

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
    """Graphs as a predictor wants them; nothing that a trial does may change it."""

    @property
    def nbytes(self) -> int: ...


F = TypeVar("F", bound=Form)


@dataclass
class Unlabeled:
    """Graphs without their labels, made when they are asked for, and the forms that predictors have made of them."""

    make: Callable[[int], Data]
    count: int
    forms: dict[tuple[type, Hashable], Form] = field(default_factory=dict)

    def graphs(self, places: Iterable[int] | None = None) -> list[Data]:
        """Some of the graphs, or all."""
        return [unlabeled(self.make(place)) for place in (range(self.count) if places is None else places)]

    def form(self, predictor: FormPredictor, key: Hashable, make: Callable[[Sequence[Data]], F]) -> F:
        """What `make` gives for the graphs, once per class of predictor and key.

        The key names all that the form depends on beside the graphs. Two classes may use the same key: each gets
        the form that it made itself.
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
    """The test graphs of a fold with their labels; a predictor is given `unlabeled`."""

    def __init__(self, make: Callable[[int], Data], truth: np.ndarray) -> None:
        """`make` gives the graph at a place."""
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
    """A base for predictors that can do more with a test part than look at graph after graph."""

    @abstractmethod
    def classes(self, graphs: Unlabeled) -> np.ndarray | None:
        """The class of each graph, the same that `probabilities` gives; None if it cannot tell for these graphs."""


class HeldOutParts:
    """The parts that were looked at last, within bounds."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_parts: int = MOST_PARTS) -> None:
        self.most_bytes, self.most_parts = most_bytes, most_parts
        self.parts: OrderedDict[Hashable, HeldOut] = OrderedDict()

    def fetch(self, key: Hashable, make: Callable[[], HeldOut]) -> HeldOut:
        """The part under a key; those that were not asked for longest go when there are too many."""
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
    """What a predictor says of each test graph; it never sees a label."""
    if isinstance(graphs, HeldOut) and isinstance(predictor, FormPredictor):
        guess = predictor.classes(graphs.unlabeled)
        if guess is not None:
            return guess
    classes: np.ndarray = predictions(predictor, graphs, num_classes).argmax(dim=1).numpy()
    return classes
