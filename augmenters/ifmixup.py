"""ifMixup (Guo and Mao, AAAI 2023): overlays two graphs and mixes edges, features and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, label_distribution
from augmenters.functional import edge_weights
from augmenters.gdm import subset_size
from augmenters.gdm_mixup import Mixing, draw_mixing, larger_size, mix_rows
from augmenters.kinds import OneByOneAugmenter
from augmenters.samplers import pairs_within
from bench.registry import Tune, Within


@dataclass(frozen=True)
class Mixings:
    """The draws of ifMixup."""

    mixings: list[Mixing]
    num_classes: int


@dataclass(frozen=True)
class IfMixup(OneByOneAugmenter):
    """A = lambda A_1 + (1 - lambda) A_2 with edge weights; X and y likewise; lambda ~ Beta(alpha, alpha).

    The smaller graph is padded with zero nodes. `align`: whether its nodes are placed at random or in file order.
    Generates as many graphs as GDM: it is GDM without the auto-encoder.
    """

    alpha: Annotated[float, Within(0, 100, above=True), Tune(0.1, 5.0, log=True)] = 1.0
    align: Annotated[Literal["random", "file"], Tune()] = "random"
    count: Annotated[float, Within(0, 100, above=True), Tune(choices=(0.5, 1.0, 2.0))] = 1.0
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    features: FeaturePolicy = "carry"
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"
    weighted: ClassVar[bool] = True

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Mixings:
        pairs = pairs_within(np.arange(len(graphs)), 3 * subset_size(len(graphs), self.count), rng, context.note)
        sizes = np.array([int(graph.num_nodes or 0) for graph in graphs])
        mixings = [draw_mixing(pair, sizes, self.alpha, self.alpha, rng) for pair in pairs]
        if self.align == "file":
            mixings = [Mixing(m.first, m.second, m.share, np.arange(len(m.places))) for m in mixings]
        return Mixings(mixings, context.num_classes)

    def generate_each(self, graphs: Sequence[Data], drawn: Mixings) -> Iterator[Data]:
        for mixing in drawn.mixings:
            yield overlay(graphs[mixing.first], graphs[mixing.second], mixing, drawn.num_classes)


def overlay(first: Data, second: Data, mixing: Mixing, num_classes: int) -> Data:
    """The mixed graph without edges of weight zero."""
    share, size = mixing.share, larger_size(first, second)
    places = torch.from_numpy(mixing.places)
    # As in `mix_rows`: the smaller graph is permuted; at equal sizes, the second.
    ends = [first.edge_index, second.edge_index]
    moved = 1 if int(first.num_nodes or 0) >= int(second.num_nodes or 0) else 0
    ends[moved] = places[ends[moved]]
    weights = [share * edge_weights(first), (1 - share) * edge_weights(second)]
    edge_index, weight = summed_edges(torch.cat(ends, dim=1), torch.cat(weights), size)
    labels = [label_distribution(graph, num_classes) for graph in (first, second)]
    new = Data(edge_index=edge_index, edge_weight=weight, y=share * labels[0] + (1 - share) * labels[1])
    new.num_nodes = size
    if first.x is not None and second.x is not None:
        new.x = mix_rows(first.x.float(), second.x.float(), mixing)
    return new


def summed_edges(edge_index: Tensor, weight: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Each edge once with the sum of its weights; edges of weight zero are left out."""
    codes, place = torch.unique(edge_index[0] * size + edge_index[1], return_inverse=True)
    total = torch.zeros(len(codes)).index_add_(0, place, weight.float())
    there = total > 0
    return torch.stack([codes // max(size, 1), codes % max(size, 1)])[:, there], total[there]
