"""The network of each epoch, with the draws that the reference makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from numpy.random import Generator

from augmenters.base import Augmenter, Context, EmbeddingAugmenter, GraphAugmenter
from bench.learning.augmentation import generate
from bench.learning.fast.graphs.parts import parts_of
from bench.learning.fast.graphs.prepared import Prepared
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.training.build import fixed_network
from bench.learning.fast.training.changing import changes_as_promised, changing_network
from bench.learning.fast.training.mixing import Mixing, draw_mixing, mixes_pairs
from bench.learning.fast.training.network import Network
from bench.learning.problem import Problem, training_set

Epoch = tuple[Network, Mixing | None]  # and the mix of its embeddings if there is one


def leaves_torch_alone(augmenter: Augmenter) -> bool:
    """Whether it promises to draw nothing from torch's stream during training."""
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
        """The network of each epoch: the same one, the same one changed as promised, or another one."""
        augmenter = self.problem.augmenter
        if isinstance(augmenter, EmbeddingAugmenter):
            return self.with_mixes(augmenter, rng, context)
        if not isinstance(augmenter, GraphAugmenter) or augmenter.when == "offline":
            return self.always_the_same()
        if changes_as_promised(augmenter):
            return self.changed(rng)
        return self.made_anew(augmenter, rng, context)

    def network(self, same_order: bool = False) -> Network:
        """Of the training set that stays."""
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

    def always_the_same(self) -> Iterator[Epoch]:
        network = self.network()
        for _ in range(self.problem.training.epochs):
            yield network, None

    def with_mixes(self, augmenter: EmbeddingAugmenter, rng: Generator, context: Context) -> Iterator[Epoch]:
        network = self.network(same_order=not mixes_pairs(augmenter))
        for _ in range(self.problem.training.epochs):
            mixing = draw_mixing(augmenter, self.problem.graphs, rng, context)
            if self.dropout is not None and self.dropout.disturbed():
                raise NotFast(f"{type(augmenter).__name__} draws from torch's global stream")
            yield network, mixing

    def changed(self, rng: Generator) -> Iterator[Epoch]:
        changing = changing_network(self.problem, self.model, self.parameters, self.dropout)
        for _ in range(self.problem.training.epochs):
            changing.begin_epoch(rng)
            yield changing.network, None

    def made_anew(self, augmenter: GraphAugmenter, rng: Generator, context: Context) -> Iterator[Epoch]:
        """For an augmenter that promises nothing: every epoch has graphs and a network of its own."""
        for _ in range(self.problem.training.epochs):
            data = training_set(self.problem, generate(self.problem, augmenter, rng, context))
            parts = parts_of(data.graphs, whole=self.model.layer == "gat")
            targets, weights = data.targets, data.weights
            yield (
                fixed_network(self.model, self.parameters, parts, targets, weights, self.dropout, many_steps=False),
                None,
            )
