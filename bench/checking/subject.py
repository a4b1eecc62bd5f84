"""An augmenter under test: every case is run once, and the outcomes are kept for all properties."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from augmenters import AUGMENTERS
from augmenters.base import Augmenter, Context, EmbeddingAugmenter, GraphAugmenter, StepAugmenter, generator
from bench.checking.cases import Case, cases
from bench.checking.comparing import first_difference
from bench.learning.steps import ModelView
from bench.registry import Choice, UserError
from bench.seeding import seed_from
from models.classifier import build_classifier

EMBEDDING_WIDTH = 8


@dataclass(frozen=True)
class Outcome:
    """The outcome of one run of an augmenter on one case."""

    made: list[Data] = field(default_factory=list)
    mixed: tuple[Tensor, Tensor, Tensor] | None = None  # input embeddings, output embeddings and targets
    notes: dict[str, float] = field(default_factory=dict)
    error: str | None = None
    touched: str | None = None  # how the input was modified
    leaked: str | None = None  # which global random state was changed
    aliased: str | None = None  # which part of the output shares memory with the input
    drew: bool = False  # whether the augmenter used its own random stream


@dataclass
class Subject:
    """One augmenter with its settings. `instance` processes all cases in turn, as in a long session."""

    choice: Choice
    instance: Augmenter
    _outcomes: dict[str, Outcome] = field(default_factory=dict)

    @classmethod
    def of(cls, spec: str | Choice) -> Subject:
        choice = AUGMENTERS.resolve(spec)
        return cls(choice, make(choice))

    @property
    def makes_graphs(self) -> bool:
        return isinstance(self.instance, GraphAugmenter | StepAugmenter)

    def fresh(self) -> Augmenter:
        """A new instance that has seen nothing."""
        return make(self.choice)

    def outcome(self, case: Case) -> Outcome:
        if case.name not in self._outcomes:
            self._outcomes[case.name] = observe(self.instance, case)
        return self._outcomes[case.name]

    def outcomes(self) -> Iterator[tuple[Case, Outcome]]:
        """The outcomes of all cases that ran; failures have a row of their own in the report."""
        for case in cases():
            outcome = self.outcome(case)
            if outcome.error is None:
                yield case, outcome


def make(choice: Choice) -> Augmenter:
    """An instance, or one line that explains why it cannot be created."""
    try:
        augmenter: Augmenter = AUGMENTERS.create(choice)
    except TypeError as error:
        raise UserError(
            f"{choice.name} cannot be made: {error}; implement draw and apply (or mix, or step), and give every "
            "setting a default and the type bool, int, float or str"
        ) from error
    return augmenter


def observe(augmenter: Augmenter, case: Case, seed: int = 0, standalone: bool = False) -> Outcome:
    """Run an augmenter on a copy of a case and record side effects."""
    graphs = [graph.clone() for graph in case.graphs]
    rng = generator(seed_from("check", case.name, seed))
    before = rng.bit_generator.state
    notes: dict[str, float] = {}
    result = Outcome()
    with watched_globals() as leaks:
        try:
            context = Context.standalone(graphs, rng) if standalone else context_of(case, seed)
            notes = context.notes
            result = act(augmenter, graphs, rng, context)
        except Exception as error:  # third-party code: whatever it raises is a finding, not a failure of ours
            text = " ".join(str(error).split())[:300]
            result = Outcome(error=f"{type(error).__name__}: {text}" if text else type(error).__name__)
    return Outcome(
        result.made,
        result.mixed,
        notes,
        result.error,
        first_difference(case.graphs, graphs),
        ", ".join(leaks) or None,
        shared_memory(graphs, result.made),
        rng.bit_generator.state != before,
    )


def act(augmenter: Augmenter, graphs: Sequence[Data], rng: np.random.Generator, context: Context) -> Outcome:
    """Call the augmenter once, as the engine would."""
    if isinstance(augmenter, GraphAugmenter):
        made = augmenter(graphs, rng, context)
        if not isinstance(made, list):
            raise TypeError(f"it must return a list of graphs, not {type(made).__name__}")
        return Outcome(made)
    if isinstance(augmenter, StepAugmenter):
        return Outcome(take_step(augmenter, graphs, rng, context))
    if not isinstance(augmenter, EmbeddingAugmenter):
        raise TypeError("it is not a GraphAugmenter, EmbeddingAugmenter or StepAugmenter; derive it from one of them")
    stream = torch.Generator().manual_seed(len(graphs))
    given = torch.randn(len(graphs), EMBEDDING_WIDTH, generator=stream).requires_grad_()
    targets = torch.nn.functional.one_hot(torch.cat([g.y for g in graphs]), context.num_classes).float()
    kept, kept_targets = given.detach().clone(), targets.clone()
    mixed = augmenter.mix(given, targets, augmenter.draw(graphs, rng, context))
    if not (torch.equal(given.detach(), kept) and torch.equal(targets, kept_targets)):
        raise ValueError("mix modified its input embeddings or targets; return new tensors")
    if not (isinstance(mixed, tuple) and len(mixed) == 2 and all(isinstance(part, Tensor) for part in mixed)):
        raise TypeError("mix must return a pair of tensors: embeddings and targets")
    return Outcome(mixed=(given, *mixed))


class WatchingView(ModelView):
    """A view of a small model that records the graphs that a step has learned from."""

    def __init__(self, graphs: Sequence[Data], num_classes: int) -> None:
        channels = graphs[0].num_node_features
        model = build_classifier("gcn:width=8,layers=2", "mean", channels, num_classes, seed=0)
        super().__init__(model, num_classes, "cpu", lambda graph: with_some_features(graph, channels))
        self.learned: list[Data] = []

    def learn(self, graphs: Sequence[Data], share: float = 1.0) -> list[Tensor]:
        self.learned += [graph.clone() if isinstance(graph, Data) else graph for graph in graphs]
        return super().learn(graphs, share)


def with_some_features(graph: Data, channels: int) -> Data:
    """The features, or ones for features that the harness would compute."""
    if graph.x is not None:
        return graph
    new = graph.clone()
    new.x = torch.ones(int(graph.num_nodes or 0), channels)
    return new


def take_step(
    augmenter: StepAugmenter, graphs: Sequence[Data], rng: np.random.Generator, context: Context
) -> list[Data]:
    """The graphs that one step learned from."""
    view = WatchingView(graphs, context.num_classes)
    before = [parameter.detach().clone() for parameter in view.model.parameters()]
    augmenter.step(view, graphs, augmenter.draw(graphs, rng, context))
    if not all(torch.equal(old, new) for old, new in zip(before, view.model.parameters(), strict=True)):
        raise ValueError("step changed the weights of the model; only the optimizer may, after view.learn")
    if not view.learned:
        raise ValueError("step never called view.learn; call it with the graphs to train on")
    return view.learned


def shared_memory(given: Sequence[Data], made: Sequence[Any]) -> str | None:
    """Whether an output tensor shares memory with an input tensor, so that a write would affect both."""
    taken = [(extent(value), place) for place, graph in enumerate(given) for _, value in tensors(graph)]
    for place, graph in enumerate(made):
        for name, value in tensors(graph):
            low, high = extent(value)
            for (start, stop), original in taken:
                if low < stop and start < high:
                    return f"{name} of graph {place} lies in the memory of original {original}; clone it"
    return None


def tensors(graph: Any) -> list[tuple[str, Tensor]]:
    """The tensors of a graph by name."""
    items = graph.to_dict().items() if isinstance(graph, Data) else ()
    return [(name, value) for name, value in items if isinstance(value, Tensor) and value.numel()]


def extent(value: Tensor) -> tuple[int, int]:
    """The memory range of a tensor."""
    storage = value.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def context_of(case: Case, seed: int) -> Context:
    """The harness's side of the contract, with fixed predictions instead of a trained classifier."""
    return Context(
        case.num_classes, case.classify, lambda key: generator(seed_from("check", case.name, seed, "shared", key))
    )


@contextlib.contextmanager
def watched_globals() -> Iterator[list[str]]:
    """The names of the global random states that were changed inside the block, filled in on exit."""
    leaks: list[str] = []
    before = random.getstate(), repr(np.random.get_state()), torch.get_rng_state()
    yield leaks
    if random.getstate() != before[0]:
        leaks.append("random")
    if repr(np.random.get_state()) != before[1]:
        leaks.append("numpy.random")
    if not torch.equal(torch.get_rng_state(), before[2]):
        leaks.append("torch's default generator")
