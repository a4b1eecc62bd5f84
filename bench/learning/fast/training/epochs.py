"""The network of each epoch, with the same random draws as the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from numpy.random import Generator
from torch import Tensor

from augmenters.base import Augmenter, Context, EmbeddingAugmenter, GraphAugmenter
from augmenters.kinds import NewEdgesAugmenter, kind_of
from bench.learning.augmentation import generate
from bench.learning.fast.graphs.parts import Part, parts_of
from bench.learning.fast.graphs.prepared import Prepared
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.build import fixed_network
from bench.learning.fast.training.changing import changes_as_promised, changing_network
from bench.learning.fast.training.loop import TrainingStep
from bench.learning.fast.training.mixing import draw_mixing, mixes_pairs
from bench.learning.fast.training.network import Network
from bench.learning.fast.training.rewired import RewiredNetworks
from bench.learning.problem import MiniBatches, Problem, training_set

Epoch = Sequence[TrainingStep]


def leaves_torch_alone(augmenter: Augmenter) -> bool:
    """Whether an augmenter promises to draw nothing from torch's generator during training."""
    if isinstance(augmenter, EmbeddingAugmenter):
        return mixes_pairs(augmenter)
    return augmenter.when == "offline" or changes_as_promised(augmenter)


@dataclass(frozen=True)
class Epochs:
    """All epochs of one training."""

    problem: Problem
    model: Architecture
    parameters: Parameters
    fixed: Prepared
    dropout: Dropout | None

    def each(self, rng: Generator, context: Context) -> Iterator[Epoch]:
        """The networks of each epoch: always the same, changed as promised, or rebuilt.

        With mini-batches, every step has its own network.
        """
        augmenter = self.problem.augmenter
        if isinstance(augmenter, EmbeddingAugmenter):
            return self.with_mixes(augmenter, rng, context)
        if not isinstance(augmenter, GraphAugmenter) or augmenter.when == "offline":
            return self.always_the_same()
        if changes_as_promised(augmenter) and not self.batches.cut(len(self.problem.graphs)):
            return self.changed(rng)
        if self.has_new_edges(augmenter):
            return self.rewired(augmenter, rng)
        return self.made_anew(augmenter, rng, context)

    @cached_property
    def batches(self) -> MiniBatches:
        return MiniBatches(self.problem)

    def network(self, same_order: bool = False) -> Network:
        """The network of the unchanged training set."""
        fixed = self.fixed
        return fixed_network(
            self.model,
            self.parameters,
            fixed.parts,
            fixed.targets,
            fixed.weights,
            self.dropout,
            same_order=same_order,
        )

    def step(self, parts: Sequence[Part], targets: Tensor, weights: Tensor) -> Network:
        """The network of graphs that are combined for a single step."""
        return fixed_network(self.model, self.parameters, parts, targets, weights, self.dropout, many_steps=False)

    def cut(self) -> Iterator[list[tuple[list[int], Network]]]:
        """The mini-batches of each epoch of an unchanged training set."""
        fixed = self.fixed
        for _ in range(self.problem.training.epochs):
            found = []
            for places in self.batches.of(len(fixed.parts)):
                parts = [fixed.parts[i] for i in places.tolist()]
                found.append((places.tolist(), self.step(parts, fixed.targets[places], fixed.weights[places])))
            yield found

    def always_the_same(self) -> Iterator[Epoch]:
        if self.batches.cut(len(self.fixed.parts)):
            for steps in self.cut():
                yield [(network, None) for _, network in steps]
            return
        network = self.network()
        for _ in range(self.problem.training.epochs):
            yield [(network, None)]

    def with_mixes(self, augmenter: EmbeddingAugmenter, rng: Generator, context: Context) -> Iterator[Epoch]:
        graphs = self.problem.graphs
        if self.batches.cut(len(graphs)):
            for steps in self.cut():
                chosen = [([graphs[i] for i in places], network) for places, network in steps]
                yield [(network, draw_mixing(augmenter, some, rng, context)) for some, network in chosen]
            return
        network = self.network(same_order=not mixes_pairs(augmenter))
        for _ in range(self.problem.training.epochs):
            mixing = draw_mixing(augmenter, self.problem.graphs, rng, context)
            if self.dropout is not None and self.dropout.disturbed():
                raise NotFast(f"{type(augmenter).__name__} draws from torch's global stream")
            yield [(network, mixing)]

    def changed(self, rng: Generator) -> Iterator[Epoch]:
        changing = changing_network(self.problem, self.model, self.parameters, self.dropout)
        for _ in range(self.problem.training.epochs):
            changing.begin_epoch(rng)
            yield [(changing.network, None)]

    def has_new_edges(self, augmenter: GraphAugmenter) -> TypeGuard[NewEdgesAugmenter]:
        """Whether the augmenter's kind promises new edges over the same nodes, and the layers can be built from those
        alone.
        """
        whole = self.model.layer != "gat" and not self.batches.cut(len(self.problem.graphs))
        return whole and kind_of(type(augmenter)) is NewEdgesAugmenter

    def rewired(self, augmenter: NewEdgesAugmenter, rng: Generator) -> Iterator[Epoch]:
        networks = RewiredNetworks(self.problem, self.model, self.parameters, self.dropout)
        for _ in range(self.problem.training.epochs):
            yield [(networks.next(augmenter.draw_edges(networks.joined, rng)), None)]

    def made_anew(self, augmenter: GraphAugmenter, rng: Generator, context: Context) -> Iterator[Epoch]:
        """For an augmenter that promises nothing: new graphs and networks in each epoch."""
        for _ in range(self.problem.training.epochs):
            data = training_set(self.problem, generate(self.problem, augmenter, rng, context))
            whole = self.model.layer == "gat"
            steps = [(parts_of(one.graphs, whole), one.targets, one.weights) for one in self.batches.split(data)]
            yield [(self.step(*step), None) for step in steps]
