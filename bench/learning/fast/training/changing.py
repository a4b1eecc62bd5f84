"""Networks for graphs that change in each epoch as the augmenter's kind promises: in edges, nodes or features."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter
from augmenters.functional import EdgeNumbers, any_weighted
from augmenters.kinds import EdgeFactorAugmenter, FeatureAugmenter, KeptNodes, KeptNodesAugmenter, kind_of
from bench.learning.fast.graphs.aggregation import layer_matrix, node_matrix
from bench.learning.fast.graphs.changing import ChangingConvolution
from bench.learning.fast.graphs.classes import each_alone
from bench.learning.fast.graphs.joined import join
from bench.learning.fast.graphs.pattern import Pattern
from bench.learning.fast.kernels import Architecture
from bench.learning.fast.not_fast import NotFast
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.parameters import Parameters
from bench.learning.fast.ops.pooling import Pooling, kept_pooling, pooling
from bench.learning.fast.ops.product import BothWays, Direction, Half, cheapest_rows
from bench.learning.fast.training.attention import AttentionLayer, AttentionStack, Entries
from bench.learning.fast.training.build import WEIGHTS_REFUSED
from bench.learning.fast.training.convolution import ConvolutionStack
from bench.learning.fast.training.network import Network, Stack
from bench.learning.problem import Problem, training_set
from models.sparse_features import sparse_matrix

MOST_AHEAD, ENTRIES_AHEAD = 16, 500_000  # epochs drawn ahead, and their total number of entries


class Changing(ABC):
    """A network that `begin_epoch` prepares for the next step."""

    network: Network

    def __init__(self, problem: Problem, model: Architecture, dropout: Dropout | None) -> None:
        self.graphs, self.model, self.dropout = problem.graphs, model, dropout
        self.numbers, self.name = EdgeNumbers(problem.graphs), type(problem.augmenter).__name__
        if model.layer == "gat" and (problem.augmenter.weighted or any_weighted(problem.graphs)):
            raise NotFast(WEIGHTS_REFUSED)

    @abstractmethod
    def begin_epoch(self, rng: Generator) -> None: ...

    def connect(self, problem: Problem, parameters: Parameters, stack: Stack, readout: Pooling) -> None:
        data = training_set(problem, list(self.graphs))
        self.network = Network(parameters, stack, readout, data.targets, data.weights, self.model.ending)

    def whole_readout(self) -> Pooling:
        """The readout over all nodes."""
        nodes = self.numbers.nodes
        return pooling(self.model.readout, self.numbers.sizes, np.arange(nodes), nodes, self.model.width)

    def check_stream(self) -> None:
        """Dropout masks are drawn separately from torch's generator, which is correct only if nothing else draws from
        it.
        """
        if self.dropout is not None and self.dropout.disturbed():
            raise NotFast(f"{self.name} draws from torch's global stream")


class ChangingPairs(Changing):
    """The pattern of pairs is fixed, and the factors of the pairs are drawn several epochs ahead.

    They are drawn in order; the arithmetic for all of them costs little more than for one.
    """

    def __init__(self, problem: Problem, model: Architecture, parameters: Parameters, dropout: Dropout | None) -> None:
        super().__init__(problem, model, dropout)
        self.pattern = Pattern(problem.graphs, loops=model.layer != "sage")
        self.ahead = max(1, min(MOST_AHEAD, ENTRIES_AHEAD // max(1, len(self.pattern.row))))
        self.turns = itertools.cycle(range(self.ahead))
        stack, self.weights = changing_stack(model, parameters, problem.graphs, self.pattern, dropout)
        self.connect(problem, parameters, stack, self.readout())

    @abstractmethod
    def readout(self) -> Pooling: ...

    @abstractmethod
    def draw_ahead(self, rng: Generator) -> Tensor:
        """The factor of each pair in each of the next epochs: pairs x epochs."""

    def begin_epoch(self, rng: Generator) -> None:
        turn = next(self.turns)
        if turn == 0:
            self.weights.prepare(self.draw_ahead(rng))
            self.check_stream()
        self.weights.use(turn)
        self.take_turn(turn)

    def take_turn(self, turn: int) -> None:
        """Further preparations of an epoch."""


class EdgeFactors(ChangingPairs):
    """One factor for both directions of an edge; loops keep a factor of 1, after the last edge."""

    def __init__(self, problem: Problem, model: Architecture, parameters: Parameters, dropout: Dropout | None) -> None:
        super().__init__(problem, model, parameters, dropout)
        assert isinstance(problem.augmenter, EdgeFactorAugmenter)
        self.augmenter, edges = problem.augmenter, self.numbers
        self.factors = torch.ones(self.ahead, edges.total + 1)
        self.drawn = self.factors.numpy()[:, :-1]
        self.edge_of_pair = torch.from_numpy(np.append(edges.of_directed, edges.total)[self.pattern.edge])

    def readout(self) -> Pooling:
        return self.whole_readout()

    def draw_ahead(self, rng: Generator) -> Tensor:
        for row in self.drawn:
            row[:] = self.augmenter.factors(self.numbers, rng)
        return self.factors.t().contiguous().index_select(0, self.edge_of_pair)


class NodesThatStay(ChangingPairs):
    """A pair counts if both of its nodes are kept; a dropped node keeps its loop, but its row is never read."""

    def __init__(self, problem: Problem, model: Architecture, parameters: Parameters, dropout: Dropout | None) -> None:
        super().__init__(problem, model, parameters, dropout)
        assert isinstance(problem.augmenter, KeptNodesAugmenter)
        self.augmenter = problem.augmenter
        self.row, self.column = torch.from_numpy(self.pattern.row), torch.from_numpy(self.pattern.column)
        self.loops = (self.row == self.column).nonzero().view(-1)
        self.last_counts = np.zeros((1, len(self.numbers.sizes)), dtype=np.int64)

    def readout(self) -> Pooling:
        self.kept_readout = kept_pooling(self.model.readout, self.numbers.sizes, self.model.width)
        return self.kept_readout

    def draw_ahead(self, rng: Generator) -> Tensor:
        drawn = [self.augmenter.kept(self.numbers, rng) for _ in range(self.ahead)]
        found = KeptNodes.of(self.numbers, drawn, self.name)
        changed = np.diff(np.concatenate([self.last_counts, found.counts]), axis=0).any(axis=1)
        self.recounts = {int(turn): found.counts[turn] for turn in np.flatnonzero(changed)}  # where counts change
        self.last_counts = found.counts[-1:]
        self.nodes = [torch.from_numpy(part) for part in found.nodes]
        self.masks = torch.from_numpy(found.masks).to(torch.get_default_dtype())
        kept = self.masks.t().contiguous()
        both = kept.index_select(0, self.row).mul_(kept.index_select(0, self.column))
        return both.index_fill_(0, self.loops, 1)

    def take_turn(self, turn: int) -> None:
        if turn in self.recounts:
            self.kept_readout.recount(self.recounts[turn])
        self.kept_readout.keep(self.nodes[turn], self.masks[turn])
        if self.dropout is not None:  # the reference has only the rows of these nodes, in order
            self.dropout.nodes = self.nodes[turn].sort().values


class NewFeatures(Changing):
    """The graphs are fixed; the first layer gets new features."""

    def __init__(self, problem: Problem, model: Architecture, parameters: Parameters, dropout: Dropout | None) -> None:
        super().__init__(problem, model, dropout)
        assert isinstance(problem.augmenter, FeatureAugmenter)
        self.augmenter = problem.augmenter
        self.x = torch.cat([graph.x for graph in self.graphs]).numpy()
        joined = join(self.graphs, whole=model.layer == "gat")
        alone = each_alone(self.numbers.nodes)
        stack: Stack
        if model.layer == "gat":
            self.attention = stack = AttentionStack.of(
                joined, [alone] * (model.layers + 1), parameters, model.heads, dropout
            )
        else:
            nodes = node_matrix(joined, model.layer)
            between = [BothWays.of(layer_matrix(nodes, model.layer, alone, alone).with_bias())] * (model.layers - 1)
            self.stack = stack = ConvolutionStack(
                model.layer, parameters, (), len(self.x), between, model.width, dropout
            )
            stack.leave_out_unused(parameters)
            first = Direction.of(nodes)
            self.aggregate = Half(first, torch.empty(first.columns + first.sums, self.x.shape[1]))
        self.connect(problem, parameters, stack, self.whole_readout())

    def begin_epoch(self, rng: Generator) -> None:
        x = torch.from_numpy(np.ascontiguousarray(self.augmenter.changed_features(self.x, self.numbers, rng)))
        self.check_stream()
        if self.model.layer == "gat":
            self.attention.first = x
            return
        self.aggregate.rows.copy_(x)
        self.stack.first.give((self.aggregate(), x) if self.model.layer == "sage" else (self.aggregate(),))


NETWORKS: dict[type | None, Callable[..., Changing]] = {
    EdgeFactorAugmenter: EdgeFactors,
    KeptNodesAugmenter: NodesThatStay,
    FeatureAugmenter: NewFeatures,
}


def changes_as_promised(augmenter: Augmenter) -> bool:
    """Whether one of these networks can be used; features recomputed from the changed graphs are not covered by the
    promise.
    """
    return kind_of(type(augmenter)) in NETWORKS and augmenter.features == "carry"


def changing_network(
    problem: Problem, model: Architecture, parameters: Parameters, dropout: Dropout | None
) -> Changing:
    """The network for an augmenter that changes graphs as its kind promises."""
    return NETWORKS[kind_of(type(problem.augmenter))](problem, model, parameters, dropout)


def changing_stack(
    model: Architecture,
    parameters: Parameters,
    graphs: Sequence[Data],
    pattern: Pattern,
    dropout: Dropout | None,
) -> tuple[Stack, PairWeights]:
    """The backbone over a pattern, and the object that takes the weights of its pairs."""
    x = torch.cat([graph.x for graph in graphs])
    if model.layer == "gat":
        entries = Entries(pattern.matrix(), np.arange(pattern.nodes), model.heads)
        attention = [
            AttentionLayer(parameters, f"backbone.convs.{i}", entries, pattern.nodes, pattern.nodes, dropout)
            for i in range(model.layers)
        ]
        features = cheapest_rows(sparse_matrix(x).astype(np.float64))
        return AttentionStack(features, attention), AttentionWeights(entries)
    convolution = ChangingConvolution(model.layer, pattern, x)
    matrices = [convolution.both_ways] * (model.layers - 1)
    stack = ConvolutionStack(model.layer, parameters, (), pattern.nodes, matrices, model.width, dropout)
    stack.leave_out_unused(parameters)
    return stack, ConvolutionWeights(convolution, stack)


class PairWeights(Protocol):
    """Takes the weights of a pattern's pairs, pairs x epochs, and uses those of one epoch after another."""

    def prepare(self, weights: Tensor) -> None: ...

    def use(self, epoch: int) -> None: ...


class AttentionWeights:
    """The multiplicity of each pair in the softmax."""

    def __init__(self, entries: Entries) -> None:
        self.entries, self.counts = entries, torch.empty(0)

    def prepare(self, weights: Tensor) -> None:
        self.counts = weights.t().contiguous()

    def use(self, epoch: int) -> None:
        self.entries.set_counts(self.counts[epoch])


class ConvolutionWeights:
    """The values of the aggregation matrix, and the first layer's input with them."""

    def __init__(self, convolution: ChangingConvolution, stack: ConvolutionStack) -> None:
        self.convolution, self.stack = convolution, stack

    def prepare(self, weights: Tensor) -> None:
        self.convolution.prepare(weights)

    def use(self, epoch: int) -> None:
        self.stack.first.give(self.convolution.use(epoch))
