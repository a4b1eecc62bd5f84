"""SubMix (Yoo et al., WWW 2022): replaces a part of one graph with a part of another and mixes labels by edges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from numpy.random import Generator
from torch_geometric.data import Data

from augmenters.base import Context, FeaturePolicy, label_distribution
from augmenters.functional import EdgeNumbers, any_weighted, edge_weights
from augmenters.gdm import subset_size
from augmenters.kinds import OneByOneAugmenter
from augmenters.pagerank import order_from_roots
from augmenters.samplers import pairs_within
from bench.registry import Tune, Within


@dataclass(frozen=True)
class Swap:
    """Node i of `given` (in the source) replaces node i of `taken` (in the destination)."""

    destination: int
    source: int
    taken: np.ndarray
    given: np.ndarray


@dataclass(frozen=True)
class Swaps:
    """The draws of SubMix."""

    swaps: list[Swap]
    num_classes: int


@dataclass(frozen=True)
class SubMix(OneByOneAugmenter):
    """Generates as many graphs as GDM, each from a random pair; nodes are ranked by PageRank from a random root.

    ceil(u m) nodes are swapped, where u ~ U(0, p) and m is the size of the smaller of the two roots' components. Edges
    inside the replaced part are removed, its edges to the rest are kept, and the inner edges and features of the source
    are inserted. The label of the destination is weighted by its share of the new graph's edges.
    """

    p: Annotated[float, Within(0, 1), Tune(0.1, 0.9)] = 0.4
    count: Annotated[float, Within(0, 100, above=True), Tune(choices=(0.5, 1.0, 2.0))] = 1.0
    weight: Annotated[float, Within(0), Tune(0.1, 2.0, log=True)] = 1.0
    features: FeaturePolicy = "recompute"
    mode: ClassVar[Literal["append"]] = "append"
    labels: ClassVar[Literal["mixed"]] = "mixed"

    def draw(self, graphs: Sequence[Data], rng: Generator, context: Context) -> Swaps:
        pairs = pairs_within(np.arange(len(graphs)), 3 * subset_size(len(graphs), self.count), rng, context.note)
        numbers = [EdgeNumbers([graph]) for graph in graphs]
        swaps = []
        for destination, source in pairs:
            lists = [near_random_root(numbers[place], rng) for place in (destination, source)]
            swapped = math.ceil(rng.uniform(0, self.p) * min(map(len, lists)))
            swaps.append(Swap(destination, source, lists[0][:swapped], lists[1][:swapped]))
        return Swaps(swaps, context.num_classes)

    def generate_each(self, graphs: Sequence[Data], drawn: Swaps) -> Iterator[Data]:
        weighted = any_weighted(graphs)
        for swap in drawn.swaps:
            yield swapped_graph(graphs[swap.destination], graphs[swap.source], swap, drawn.num_classes, weighted)


def near_random_root(graph: EdgeNumbers, rng: Generator) -> np.ndarray:
    """The nodes of a random root's component, closest to the root first."""
    root = rng.integers(graph.nodes, size=1)
    order = order_from_roots(graph, root, rng)
    nearest: np.ndarray = order[: int((graph.components == graph.components[root[0]]).sum())]
    return nearest


def swapped_graph(destination: Data, source: Data, swap: Swap, num_classes: int, weighted: bool) -> Data:
    """The destination with a part replaced; if no edge would remain, the destination itself."""
    taken, given = torch.from_numpy(swap.taken), torch.from_numpy(swap.given)
    inside = torch.zeros(int(destination.num_nodes or 0), dtype=torch.bool)
    inside[taken] = True
    kept = ~inside[destination.edge_index].all(dim=0)
    place = torch.full((int(source.num_nodes or 0),), -1)
    place[given] = taken
    ends = place[source.edge_index]
    new = (ends >= 0).all(dim=0)
    labels = [label_distribution(graph, num_classes) for graph in (destination, source)]
    made = Data(edge_index=torch.cat([destination.edge_index[:, kept], ends[:, new]], dim=1))
    made.num_nodes, total = destination.num_nodes, made.num_edges
    weights = [edge_weights(destination)[kept], edge_weights(source)[new]]
    x = None if destination.x is None else destination.x.clone()
    if total:
        share = float(kept.sum()) / total
        made.y = share * labels[0] + (1 - share) * labels[1]
        if x is not None:
            x[taken] = source.x[given]
    else:
        made.edge_index, made.y, weights = (
            destination.edge_index.clone(),
            labels[0].clone(),
            [edge_weights(destination)],
        )
    if x is not None:
        made.x = x
    if weighted:
        made.edge_weight = torch.cat(weights)
    return made
