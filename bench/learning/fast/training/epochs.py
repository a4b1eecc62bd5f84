"""What a per-epoch or in-step augmenter changes from one epoch to the next, with the draws the reference makes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, cast, get_args

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Augmenter, Context, EmbeddingAugmenter, GraphAugmenter
from augmenters.dropedge import DropEdge
from augmenters.dropnode import DropNode
from augmenters.functional import number_edges
from augmenters.m_mixup import MMixup
from augmenters.softedge import SoftEdge
from bench.learning.augmentation import generate
from bench.learning.fast.graphs.classes import each_alone
from bench.learning.fast.graphs.joined import NotFast
from bench.learning.fast.graphs.masked import ChangingConvolution, Pattern
from bench.learning.fast.graphs.prepared import Prepared
from bench.learning.fast.ops.dropout import Dropout
from bench.learning.fast.ops.pooling import KeptPooling, Pooling, kept_pooling, pooling
from bench.learning.fast.ops.product import cheapest_rows
from bench.learning.fast.training.attention import AttentionLayer, AttentionStack, Entries
from bench.learning.fast.training.build import KINDS, READOUTS, fixed_network, heads_of, parts_of
from bench.learning.fast.training.convolution import ConvolutionStack
from bench.learning.fast.training.mixing import Mixing, draw_mixing
from bench.learning.fast.training.network import Network, Stack
from bench.learning.fast.training.parameters import Parameters
from bench.learning.problem import Problem, label_rows, training_set
from models.backbones import GraphSAGE
from models.classifier import GraphClassifier

Thinning = DropEdge | DropNode | SoftEdge
MOST_AHEAD, ENTRIES_AHEAD = 16, 500_000  # epochs that are drawn ahead, and entries that they may have together
Draw = Callable[[Generator], Tensor]  # the weights of the pairs, pairs x epochs ahead
Start = Callable[[int], None]  # what else an epoch begins with


def steps(
    problem: Problem,
    model: GraphClassifier,
    parameters: Parameters,
    fixed: Prepared,
    rng: Generator,
    context: Context,
    dropout: Dropout | None,
) -> Iterator[tuple[Network, Mixing | None]]:
    """The network of each epoch, and the mix of its embeddings if there is one."""
    augmenter, epochs = problem.augmenter, problem.training.epochs
    if isinstance(augmenter, GraphAugmenter) and augmenter.when == "epoch":
        if thins_out(augmenter):
            changing = Changing(model, parameters, problem, cast(Thinning, augmenter), dropout)
            for _ in range(epochs):
                changing.redraw(rng)
                yield changing.network, None
            return
        for _ in range(epochs):
            data = training_set(problem, generate(problem, augmenter, rng, context))
            parts, targets, weights = parts_of(model, data.graphs), data.targets, data.weights
            yield fixed_network(model, parameters, parts, targets, weights, dropout, many_steps=False), None
        return
    mixes = isinstance(augmenter, EmbeddingAugmenter)
    network = fixed_network(
        model,
        parameters,
        fixed.parts,
        fixed.targets,
        fixed.weights,
        dropout,
        same_order=mixes and type(augmenter) is not MMixup,
    )
    for _ in range(epochs):
        if isinstance(augmenter, EmbeddingAugmenter):
            yield network, draw_mixing(augmenter, problem.graphs, rng, context)
        else:
            yield network, None


def thins_out(augmenter: GraphAugmenter) -> bool:
    """Whether `Changing` serves it; subclasses may draw or apply in another way, so only the classes themselves do."""
    return type(augmenter) in get_args(Thinning) and augmenter.features == "carry"


def leaves_torch_alone(augmenter: Augmenter) -> bool:
    """Whether it is known to draw nothing from torch's stream during training."""
    if isinstance(augmenter, EmbeddingAugmenter):
        return type(augmenter) is MMixup
    return not isinstance(augmenter, GraphAugmenter) or augmenter.when == "offline" or thins_out(augmenter)


class Changing:
    """A network over the trial's graphs whose edges or nodes come and go."""

    def __init__(
        self,
        model: GraphClassifier,
        parameters: Parameters,
        problem: Problem,
        augmenter: Thinning,
        dropout: Dropout | None,
    ) -> None:
        graphs, self.dropout = problem.graphs, dropout
        if heads_of(model) and (augmenter.weighted or any(graph.get("edge_weight") is not None for graph in graphs)):
            raise NotFast("edge weights, which attention refuses")
        self.pattern = Pattern(graphs, loops=type(model.backbone) is not GraphSAGE)
        stack, self.weights = changing_stack(model, parameters, graphs, self.pattern, dropout)
        self.ahead = max(1, min(MOST_AHEAD, ENTRIES_AHEAD // max(1, len(self.pattern.row))))
        self.turns = itertools.cycle(range(self.ahead))
        name, sizes, width = READOUTS[type(model.readout)], self.pattern.sizes, model.backbone.out_channels
        readout: Pooling
        if isinstance(augmenter, DropNode):
            readout = kept = kept_pooling(name, sizes, augmenter.kept_counts(sizes), width)
            self.draw, self.start = self.node_draws(augmenter, kept)
        else:
            readout = pooling(name, sizes, each_alone(self.pattern.nodes), width)
            self.draw, self.start = self.edge_draws(augmenter, graphs), lambda turn: None
        targets = label_rows(graphs, problem.num_classes)
        self.network = Network(parameters, stack, readout, targets, torch.ones(len(graphs)))

    def redraw(self, rng: Generator) -> None:
        """Start an epoch. Some are drawn ahead, in order: the arithmetic of all costs little more than of one."""
        turn = next(self.turns)
        if turn == 0:
            self.weights.prepare(self.draw(rng))
        self.weights.use(turn)
        self.start(turn)

    def edge_draws(self, augmenter: DropEdge | SoftEdge, graphs: Sequence[Data]) -> Draw:
        """DropEdge and SoftEdge: one factor for both directions of an edge; loops keep 1, behind the last edge."""
        edges = number_edges(graphs)
        draw = augmenter.draw_kept if isinstance(augmenter, DropEdge) else augmenter.draw_factors
        factors = torch.ones(self.ahead, edges.total + 1)
        drawn = factors.numpy()[:, :-1]
        numbers = torch.from_numpy(np.append(edges.of_directed, edges.total)[self.pattern.edge])

        def draw_all(rng: Generator) -> Tensor:
            for row in drawn:
                row[:] = draw(edges, rng)
            return factors.t().contiguous().index_select(0, numbers)

        return draw_all

    def node_draws(self, augmenter: DropNode, readout: KeptPooling) -> tuple[Draw, Start]:
        """DropNode: a pair counts where both ends stay; a dropped node keeps its loop, and nobody reads its row."""
        row, column = torch.from_numpy(self.pattern.row), torch.from_numpy(self.pattern.column)
        loops = (row == column).nonzero().view(-1)
        masks = torch.zeros(self.ahead, self.pattern.nodes)
        nodes: list[Tensor] = []

        def draw_all(rng: Generator) -> Tensor:
            nodes[:] = [torch.from_numpy(augmenter.draw_kept(self.pattern.sizes, rng)) for _ in masks]
            masks.zero_().scatter_(1, torch.stack(nodes), 1)
            kept = masks.t().contiguous()
            return kept.index_select(0, row).mul_(kept.index_select(0, column)).index_fill_(0, loops, 1)

        def start(turn: int) -> None:
            readout.keep(nodes[turn], masks[turn])
            if self.dropout is not None:  # the reference has the rows of these nodes only, in order
                self.dropout.nodes = nodes[turn].sort().values

        return draw_all, start


def changing_stack(
    model: GraphClassifier,
    parameters: Parameters,
    graphs: Sequence[Data],
    pattern: Pattern,
    dropout: Dropout | None,
) -> tuple[Stack, PairWeights]:
    """The backbone over a pattern, and what takes the weights of its pairs."""
    x = torch.cat([graph.x for graph in graphs])
    layers = len(model.backbone.convs)
    kind = KINDS.get(type(model.backbone))
    if kind is None:
        entries = Entries(pattern.matrix(), np.arange(pattern.nodes), heads_of(model) or 1)
        attention = [
            AttentionLayer(parameters, f"backbone.convs.{i}", entries, pattern.nodes, pattern.nodes, dropout)
            for i in range(layers)
        ]
        features = cheapest_rows(sp.csr_array(x.numpy().astype(np.float64)))
        return AttentionStack(features, attention), AttentionWeights(entries)
    convolution = ChangingConvolution(kind, pattern, x)
    matrices, width = [convolution.both_ways] * (layers - 1), model.backbone.out_channels
    stack = ConvolutionStack(kind, parameters, (), pattern.nodes, matrices, width, dropout)
    stack.leave_out_unused(parameters)
    return stack, ConvolutionWeights(convolution, stack)


class PairWeights(Protocol):
    """What takes the weights of a pattern's pairs, pairs x epochs, and uses those of one epoch after the other."""

    def prepare(self, weights: Tensor) -> None: ...

    def use(self, epoch: int) -> None: ...


class AttentionWeights:
    """How often each pair stands in the softmax."""

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
